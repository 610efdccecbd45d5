package filter_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/filter"
)

// Only what can be read gets as far as the service, which never sees the text.
func Example() {
	area := belfry.Of(func(_ context.Context, side int) (int, error) { return side * side, nil })
	svc := filter.New(area, func(_ context.Context, text string) (side int, err error) {
		if _, err = fmt.Sscan(text, &side); err == nil && side < 0 {
			err = errors.New("a side is not negative")
		}
		return side, err
	})
	ctx := context.Background()
	fmt.Println(belfry.Do(ctx, svc, "7"))
	_, err := belfry.Do(ctx, svc, "-7")
	fmt.Println(err)
	fmt.Println(errors.Is(err, filter.Err), errors.Is(err, belfry.ErrRejected))
	// Output:
	// 49 <nil>
	// filter: rejected: a side is not negative
	// true true
}
