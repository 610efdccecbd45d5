package shed_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/shed"
)

func TestShedOverBuffer(t *testing.T) {
	t.Run("S5 with 500 seats over 50 places, 50 run, 500 queue, and the next is refused at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const places, seats = 50, 500
			finish := make(chan struct{})
			l := limit.NewLimiter(places)
			room := buffer.New(limit.NewConcurrency(belfry.Of(func(_ context.Context, req string) (string, error) {
				<-finish
				return req, nil
			}), l), seats, buffer.Config{})
			svc := shed.New(room)
			answers := make(chan error, places+seats)
			for i := range places + seats {
				go func() {
					_, err := belfry.Do(t.Context(), svc, "")
					answers <- err
				}()
				synctest.Wait()
				arrived := i + 1
				running := min(arrived, places)
				if s, r := l.Stats(), room.Stats(); s.InFlight != running || r.Queued != arrived-running {
					t.Fatalf("after %d: %d run, %d queue", arrived, s.InFlight, r.Queued)
				}
			}
			_, err := belfry.Do(t.Context(), svc, "")
			why, _ := errors.AsType[*belfry.Rejection](err)
			if !errors.Is(err, shed.Err) || why == nil || why.Layer != "buffer" || why.InFlight != seats || why.Limit != seats {
				t.Errorf("got %v, want a refusal by the full room", err)
			}
			close(finish)
			for range places + seats {
				if err := <-answers; err != nil {
					t.Error(err)
				}
			}
			if got := svc.Stats(); got.Shed != 1 {
				t.Errorf("got %+v", got)
			}
		})
	})

	t.Run("D28 nothing is shed while a seat is free", func(t *testing.T) {
		for _, c := range []struct{ callers, seats, places, calls int }{
			{1, 1, 1, 200_000},       // one caller needs one seat
			{512, 512, 512, 200_000}, // nobody ever has to wait
			{512, 512, 8, 10_000},    // nearly all wait in the room
		} {
			room := buffer.New(limit.NewConcurrency(belfry.Of(busy), limit.NewLimiter(c.places)), c.seats, buffer.Config{})
			svc := shed.New(room)
			hammer(t, svc, c.callers, c.calls)
			if got := svc.Stats(); got.Shed != 0 {
				t.Errorf("%+v: %d shed", c, got.Shed)
			}
			if s := room.Stats(); s.Seated != 0 || s.Admitted != uint64(c.calls) {
				t.Errorf("%+v: left behind: %+v", c, s)
			}
		}
	})
}
