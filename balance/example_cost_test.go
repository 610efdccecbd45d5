package balance_test

import (
	"context"
	"fmt"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// A prompt counts as one for each thousand tokens, so a server with one long prompt gets none of the short ones until others have as much.
func ExampleNew_cost() {
	type prompt struct{ tokens int }
	dial := func(context.Context, string, string) (belfry.Service[prompt, string], error) {
		return belfry.Of(func(context.Context, prompt) (string, error) { return "done", nil }), nil
	}
	sem := belfry.Semantics[prompt, string]{Cost: func(p prompt) int { return 1 + p.tokens/1000 }}
	models, err := balance.New(discover.List("a:80", "b:80"), dial, balance.Config{Load: load.Pending{}}, sem)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer models.Close()
	fmt.Println(belfry.Do(context.Background(), models, prompt{tokens: 32_000}))
	// Output: done <nil>
}
