module github.com/belfry-go/belfry/statetest

go 1.26.0

require (
	github.com/belfry-go/belfry v0.0.0
	pgregory.net/rapid v1.3.0
)

replace github.com/belfry-go/belfry => ../
