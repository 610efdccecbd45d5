module github.com/belfry-go/belfry

go 1.26
