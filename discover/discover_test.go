package discover_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/belfry-go/belfry/discover"
)

func TestList(t *testing.T) {
	source := discover.List("a", "b")
	for range 2 { // a list may be read again
		var got []discover.Change
		for change, err := range source {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, change)
		}
		want := []discover.Change{{Key: "a", Addr: "a"}, {Key: "b", Addr: "b"}}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestListStopsWhenTheReaderHasEnough(t *testing.T) {
	n := 0
	for _, err := range discover.List("a", "b", "c") {
		if n++; n == 2 || err != nil {
			break
		}
	}
	if n != 2 {
		t.Fatalf("read %d changes, want 2", n)
	}
}

func TestID(t *testing.T) {
	for change, want := range map[discover.Change]string{
		{Addr: "addr"}:             "addr",
		{Key: "key", Addr: "addr"}: "key",
		discover.Insert("addr"):    "addr",
		discover.Remove("key"):     "key",
	} {
		if got := change.ID(); got != want {
			t.Errorf("ID of %+v is %q, want %q", change, got, want)
		}
	}
}

// A source of one's own that waits for news can be stopped by its maker, by its reader, and by its end.
func TestASourceOverAChannel(t *testing.T) {
	read := func(source iter.Seq2[discover.Change, error], enough int) (changes, errs int) {
		for _, err := range source {
			if err != nil {
				errs++
			} else {
				changes++
			}
			if changes+errs == enough {
				break
			}
		}
		return changes, errs
	}
	t.Run("ends", func(t *testing.T) {
		news := make(chan string, 2)
		news <- "a"
		news <- ""
		close(news)
		if changes, errs := read(watch(t.Context(), news), -1); changes != 1 || errs != 1 {
			t.Fatalf("%d changes and %d errors, want 1 and 1", changes, errs)
		}
	})
	t.Run("is stopped by its maker", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if changes, errs := read(watch(ctx, nil), -1); changes != 0 || errs != 0 {
			t.Fatalf("%d changes and %d errors, want none", changes, errs)
		}
	})
	t.Run("is stopped by its reader", func(t *testing.T) {
		news := make(chan string, 2)
		news <- "a"
		news <- "b"
		if changes, _ := read(watch(t.Context(), news), 1); changes != 1 || len(news) != 1 {
			t.Fatalf("%d changes with %d left, want 1 and 1", changes, len(news))
		}
	})
}

var errNoNews = errors.New("no news")

// watch is a source of inserts, that waits for the next one as long as ctx allows.
func watch(ctx context.Context, news <-chan string) iter.Seq2[discover.Change, error] {
	return func(yield func(discover.Change, error) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case addr, ok := <-news:
				if !ok {
					return
				}
				change, err := discover.Insert(addr), error(nil)
				if addr == "" {
					change, err = discover.Change{}, errNoNews
				}
				if !yield(change, err) {
					return
				}
			}
		}
	}
}
