package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/reconnect"
)

// A connection that cannot be had at once, and that breaks.
func Example() {
	attempts := 0
	dial := func(context.Context) (belfry.Service[string, string], error) {
		if attempts++; attempts == 1 {
			return nil, errors.New("connection refused")
		}
		calls := 0
		return belfry.Of(func(_ context.Context, req string) (string, error) {
			if calls++; calls == 2 {
				return "", io.ErrUnexpectedEOF
			}
			return fmt.Sprintf("%s over connection %d", req, attempts), nil
		}), nil
	}
	svc := reconnect.New(dial, reconnect.Config{
		MinBackoff: time.Millisecond, // 100 ms, outside of examples
		Wait:       true,             // for the next attempt, if one fails
		Remake:     reconnect.Broken,
	})
	defer svc.Close()
	for _, req := range []string{"first", "second", "third"} {
		fmt.Println(belfry.Do(context.Background(), svc, req))
	}
	s := svc.Stats()
	fmt.Println(s.State, "after", s.Attempts, "attempts")
	// Output:
	// first over connection 2 <nil>
	//  unexpected EOF
	// third over connection 3 <nil>
	// ready after 3 attempts
}
