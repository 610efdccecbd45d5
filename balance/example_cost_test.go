package balance_test

import (
	"context"
	"fmt"
	"runtime"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// A prompt counts as one for each thousand tokens, so a server with one long prompt gets none of the short ones until others have as much.
func ExampleNew_cost() {
	type prompt struct{ tokens int }
	dial := func(_ context.Context, _, addr string) (belfry.Service[prompt, string], error) {
		return belfry.Of(func(context.Context, prompt) (string, error) { return addr, nil }), nil
	}
	sem := belfry.Semantics[prompt, string]{
		Cost:  func(p prompt) int { return 1 + p.tokens/1000 },
		Until: func(addr string, done func()) string { return addr }, // the answers are being read, all of them
	}
	models, err := balance.New(discover.List("a:80", "b:80", "c:80"), dial, balance.Config{Load: load.Pending{}}, sem)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer models.Close()
	for !allReady(models.Stats()) {
		runtime.Gosched()
	}
	long, err := belfry.Do(context.Background(), models, prompt{tokens: 32_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	there := 0
	for range 40 {
		if addr, _ := belfry.Do(context.Background(), models, prompt{tokens: 100}); addr == long {
			there++
		}
	}
	fmt.Println("of 40 short ones with the long one:", there)
	// Output: of 40 short ones with the long one: 0
}
