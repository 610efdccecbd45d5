package balance

import "testing"

func TestKick(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after int
		kicked        bool
	}{{"none", 0, 0, false}, {"before the wait", 2, 0, true}, {"during it", 0, 2, true}, {"both", 1, 1, true}} {
		t.Run(c.name, func(t *testing.T) {
			var k kick
			for range c.before {
				k.give()
			}
			wait := k.wait()
			for range c.after {
				k.give()
			}
			select {
			case <-wait:
				if !c.kicked {
					t.Error("the wait ended without a kick")
				}
			default:
				if c.kicked {
					t.Error("a kick was lost")
				}
			}
			k.forget()
			if len(k.wait()) != 0 {
				t.Error("a kick was remembered that had ended a wait")
			}
		})
	}
}
