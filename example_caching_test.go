package belfry_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/belfry-go/belfry"
)

// A Cache keeps the latest answers, size of them. What is in it costs no call, and its room goes back unused.
type Cache[K comparable, V any] struct {
	size int

	mu   sync.Mutex
	kept map[K]V
	keys []K // oldest first
}

func (c *Cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.kept[key]
	return v, ok
}

func (c *Cache[K, V]) put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.kept[key]; !ok {
		if len(c.keys) == c.size {
			delete(c.kept, c.keys[0])
			c.keys = c.keys[1:]
		}
		c.keys = append(c.keys, key)
	}
	c.kept[key] = v
}

// WithCache answers from a cache what inner has answered before.
func WithCache[K comparable, V any](inner belfry.Service[K, V], size int) belfry.Service[K, V] {
	c := &Cache[K, V]{size: size, kept: make(map[K]V)}
	return belfry.Around(inner, func(ctx context.Context, key K, next *belfry.Next[K, V]) (V, error) {
		if v, ok := c.get(key); ok {
			return v, nil
		}
		v, err := next.Call(ctx, key)
		if err == nil {
			c.put(key, v)
		}
		return v, err
	})
}

// What has been answered before is answered from a cache of two.
func ExampleAround_caching() {
	svc := WithCache(belfry.Of(func(_ context.Context, key string) (string, error) {
		fmt.Println("fetching", key)
		return strings.ToUpper(key), nil
	}), 2)
	for _, key := range []string{"a", "a", "b", "c", "b", "a"} {
		_, _ = belfry.Do(context.Background(), svc, key)
	}
	// Output:
	// fetching a
	// fetching b
	// fetching c
	// fetching a
}
