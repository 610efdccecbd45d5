package filter_test

import (
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/filter"
)

func BenchmarkFilter(b *testing.B) {
	for name, svc := range map[string]belfry.Service[string, string]{
		"accepted": filter.New(belfry.Of(accept), accept),
		"rejected": filter.New(belfry.Of(accept), refuse),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = belfry.Do(b.Context(), svc, "")
			}
		})
	}
}
