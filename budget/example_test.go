package budget_test

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/budget"
)

func Example() {
	b := budget.New(budget.Config{TTL: 10 * time.Second, Ratio: 0.1, Reserve: 1})
	now := time.Now()

	paid := func() (n int) {
		for b.WithdrawAt(now) {
			n++
		}
		return n
	}
	fmt.Println("reserve:", paid())
	for range 50 {
		b.DepositAt(now)
	}
	fmt.Println("after 50 successes:", paid())
	// Output:
	// reserve: 10
	// after 50 successes: 5
}
