package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var (
	phase = flag.Duration("phase", 1500*time.Millisecond, "how long each part of a scenario takes")
	rate  = flag.Int("rate", 100, "requests a second")
)

// The programs, built once, without the race detector: it is the tests that look for races, these are for what happens.
var belfryProgram, backendProgram, loadProgram string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		flag.Parse()
		// Scenarios wait most of the time.
		if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
			_ = flag.Set("test.parallel", "3")
		}
		dir, err := os.MkdirTemp("", "belfry")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		build := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "github.com/belfry-go/belfry/cmd/belfry", "./backend", "./load")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
			return 1
		}
		belfryProgram, backendProgram, loadProgram = filepath.Join(dir, "belfry"), filepath.Join(dir, "backend"), filepath.Join(dir, "load")
		return m.Run()
	}())
}

// patience is how long a test waits for what should come soon.
const patience = 20 * time.Second

// eventually waits until what is so, and fails the test with what it says if that takes too long.
func eventually(t *testing.T, what func() (string, bool)) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		says, ok := what()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", patience, says)
		}
	}
}
