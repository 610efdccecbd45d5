package budget_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/budget"
)

func BenchmarkBudget(b *testing.B) {
	b.Run("deposit", func(b *testing.B) {
		bud := budget.New(budget.Config{})
		b.ReportAllocs()
		for b.Loop() {
			bud.Deposit()
		}
	})
	b.Run("deposit at", func(b *testing.B) {
		bud := budget.New(budget.Config{})
		b.ReportAllocs()
		for b.Loop() {
			bud.DepositAt(epoch)
		}
	})
	b.Run("withdraw at", func(b *testing.B) {
		bud := budget.Unlimited()
		b.ReportAllocs()
		for b.Loop() {
			bud.WithdrawAt(epoch)
		}
	})
	b.Run("after idle", func(b *testing.B) {
		bud, now := budget.New(budget.Config{}), epoch
		b.ReportAllocs()
		for b.Loop() {
			now = now.Add(time.Hour)
			bud.DepositAt(now)
		}
	})
	b.Run("deposit, parallel", func(b *testing.B) {
		bud := budget.New(budget.Config{})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				bud.Deposit()
			}
		})
	})
}
