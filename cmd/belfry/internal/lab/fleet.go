package lab

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

//go:embed fleet.example.yaml
var exampleFleet []byte

// ExampleFleet is a file that [ParseFleet] reads, with everything that it may say.
func ExampleFleet() string { return string(exampleFleet) }

// YourOwn is the name of the scenario that a file describes.
const YourOwn = "your-own"

// A Fleet is what a file says about servers and what is asked of them.
type Fleet struct {
	Clients     int           `yaml:"clients"`
	Rate        float64       `yaml:"rate"`
	Concurrency int           `yaml:"concurrency"`
	Arrivals    string        `yaml:"arrivals"`
	Duration    time.Duration `yaml:"duration"`
	Timeout     time.Duration `yaml:"timeout"`
	Servers     []FleetServer `yaml:"servers"`
}

// A FleetServer is one or more servers that are alike.
type FleetServer struct {
	Count     int                       `yaml:"count"`
	Latency   time.Duration             `yaml:"latency"`
	Spread    string                    `yaml:"spread"`
	Quantiles map[float64]time.Duration `yaml:"quantiles"`
	Queue     bool                      `yaml:"queue"`
	Joins     time.Duration             `yaml:"joins"`
	Leaves    time.Duration             `yaml:"leaves"`
	Trouble   []Trouble                 `yaml:"trouble"`
}

// Trouble is a time when a server is not well.
type Trouble struct {
	Kind   string        `yaml:"kind"`
	From   time.Duration `yaml:"from"`
	Until  time.Duration `yaml:"until"`
	Factor float64       `yaml:"factor"`
	Share  float64       `yaml:"share"`
	After  time.Duration `yaml:"after"`
}

// What a fleet may have at most: more would take all of a machine's memory, or of a day.
const (
	maxFile     = 1 << 20
	maxServers  = 10_000
	maxClients  = 1000
	maxViews    = 1_000_000
	maxRequests = 20_000_000
	maxDuration = 24 * time.Hour
)

// LoadFleet returns the fleet that the file at path describes.
func LoadFleet(path string) (Fleet, error) {
	file, err := os.Open(path)
	if err != nil {
		return Fleet{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return Fleet{}, err
	}
	if len(data) > maxFile {
		return Fleet{}, fmt.Errorf("%s: must be no longer than 1 MiB", path)
	}
	return ParseFleet(path, data)
}

// ParseFleet returns the fleet that data describes, which is the content of the file called name.
func ParseFleet(name string, data []byte) (Fleet, error) {
	var f Fleet
	decoder := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil {
			return Fleet{}, fmt.Errorf("%s:%d: %s", name, e.GetToken().Position.Line, e.GetMessage())
		}
		return Fleet{}, fmt.Errorf("%s: is not YAML: %w", name, err)
	}
	f.defaults()
	if err := f.Validate(); err != nil {
		return Fleet{}, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (f *Fleet) defaults() {
	f.Clients = orDefault(f.Clients, 1)
	f.Arrivals = orDefault(f.Arrivals, "random")
	f.Duration = orDefault(f.Duration, time.Minute)
	for i := range f.Servers {
		s := &f.Servers[i]
		s.Count = orDefault(s.Count, 1)
		s.Spread = orDefault(s.Spread, "exponential")
		for j := range s.Trouble {
			t := &s.Trouble[j]
			t.Factor = orDefault(t.Factor, 10)
			t.Share = orDefault(t.Share, 1)
			t.Until = orDefault(t.Until, f.Duration)
		}
	}
}

func orDefault[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}

// Validate says which value is out of range, and what the range is.
func (f Fleet) Validate() error {
	count := 0
	for i, s := range f.Servers {
		if err := s.validate(fmt.Sprintf("servers[%d]", i), f.Duration); err != nil {
			return err
		}
		count += s.Count
	}
	requests := f.Rate * f.Duration.Seconds()
	switch {
	case count < 1 || count > maxServers:
		return fmt.Errorf("servers: must be 1 to %d, got %d", maxServers, count)
	case f.Clients < 1 || f.Clients > maxClients:
		return fmt.Errorf("clients: must be 1 to %d, got %d", maxClients, f.Clients)
	case f.Clients*count > maxViews:
		return fmt.Errorf("clients: times servers must be no more than %d, got %d", maxViews, f.Clients*count)
	case f.Duration < time.Second || f.Duration > maxDuration:
		return fmt.Errorf("duration: must be 1s to %v, got %v", maxDuration, f.Duration)
	case f.Timeout < 0:
		return fmt.Errorf("timeout: must be at least 0, got %v", f.Timeout)
	case f.Arrivals != "random" && f.Arrivals != "even":
		return fmt.Errorf("arrivals: must be random or even, got %q", f.Arrivals)
	case (f.Rate == 0) == (f.Concurrency == 0):
		return errors.New("rate: must be given, or concurrency, and not both")
	case f.Concurrency < 0 || f.Concurrency > maxViews:
		return fmt.Errorf("concurrency: must be 1 to %d, got %d", maxViews, f.Concurrency)
	case f.Rate != 0 && !(requests >= 100 && requests <= maxRequests):
		return fmt.Errorf("rate: times duration must be 100 to %d requests, got %.4g", maxRequests, requests)
	}
	return nil
}

func (s FleetServer) validate(name string, duration time.Duration) error {
	switch {
	case s.Count < 1 || s.Count > maxServers:
		return fmt.Errorf("%s.count: must be 1 to %d, got %d", name, maxServers, s.Count)
	case (s.Latency == 0) == (s.Quantiles == nil):
		return fmt.Errorf("%s.latency: must be given, or quantiles, and not both", name)
	case s.Quantiles == nil && (s.Latency < time.Microsecond || s.Latency > time.Hour):
		return fmt.Errorf("%s.latency: must be 1µs to 1h, got %v", name, s.Latency)
	case !slices.Contains([]string{"exponential", "constant", "uniform"}, s.Spread):
		return fmt.Errorf("%s.spread: must be exponential, constant or uniform, got %q", name, s.Spread)
	case s.Joins < 0 || s.Joins >= duration:
		return fmt.Errorf("%s.joins: must be 0 to before the end, %v, got %v", name, duration, s.Joins)
	case s.Leaves != 0 && s.Leaves <= s.Joins:
		return fmt.Errorf("%s.leaves: must be later than joins, got %v", name, s.Leaves)
	}
	if s.Quantiles != nil {
		if err := validQuantiles(name, s.quantiles()); err != nil {
			return err
		}
	}
	for i, t := range s.Trouble {
		if err := t.validate(fmt.Sprintf("%s.trouble[%d]", name, i)); err != nil {
			return err
		}
	}
	return nil
}

func validQuantiles(name string, points []sim.Quantile) error {
	if len(points) < 2 || points[0].At != 0 || points[len(points)-1].At != 1 {
		return fmt.Errorf("%s.quantiles: must begin at 0 and end at 1", name)
	}
	for i, p := range points {
		if p.Latency < 0 || i > 0 && p.Latency < points[i-1].Latency {
			return fmt.Errorf("%s.quantiles: latencies must not fall, and be at least 0", name)
		}
	}
	return nil
}

func (t Trouble) validate(name string) error {
	switch {
	case !slices.Contains([]string{"slow", "fail", "hang"}, t.Kind):
		return fmt.Errorf("%s.kind: must be slow, fail or hang, got %q", name, t.Kind)
	case t.From < 0 || t.Until <= t.From:
		return fmt.Errorf("%s.until: must be later than from, got %v", name, t.Until)
	case !(t.Factor > 0 && t.Factor <= 1e6):
		return fmt.Errorf("%s.factor: must be above 0 and at most 1000000, got %v", name, t.Factor)
	case !(t.Share > 0 && t.Share <= 1):
		return fmt.Errorf("%s.share: must be above 0 and at most 1, got %v", name, t.Share)
	case t.After < 0 || t.After > time.Hour:
		return fmt.Errorf("%s.after: must be 0 to 1h, got %v", name, t.After)
	}
	return nil
}

// Scenario returns what all policies can be run on.
func (f Fleet) Scenario() Scenario {
	return Scenario{
		Name: YourOwn, Unit: "ms", Policies: append(slices.Clone(usual), "p2c-oracle", "jsq-oracle"),
		About: fmt.Sprintf("%d servers for %v, as a file describes them", len(f.servers()), f.Duration),
		Parts: []Part{{run: f.run}}, Judged: "mean",
	}
}

// closedRequests is how many requests are simulated where the concurrency is fixed.
const closedRequests = 200_000

func (f Fleet) run(p sim.Policy, seed uint64) Outcome {
	servers := f.servers()
	all := sim.Run(sim.Config{
		Servers: servers, Clients: f.Clients, Rate: f.Rate, Even: f.Arrivals == "even", Horizon: f.Duration.Microseconds(),
		Concurrency: f.Concurrency, Requests: min(f.Concurrency, 1) * closedRequests,
		Timeout: f.Timeout.Microseconds(), Policy: p, Seed: seed,
	})
	good := func(r sim.Request) bool { return r.Good() }
	l := sim.LatenciesOf(all, good)
	counts := make([]int, len(servers))
	for _, r := range all {
		if r.Server >= 0 {
			counts[r.Server]++
		}
	}
	return Outcome{
		Figures: []Figure{
			{"failed", 1 - sim.Share(all, nil, good)},
			{"mean", l.Mean() / ms},
			{"p50", l.At(0.5) / ms},
			{"p99", l.At(0.99) / ms},
			{"p999", l.At(0.999) / ms},
			{"busiest", float64(slices.Max(counts)) / float64(len(all))},
		},
		Curve: curve(l, ms),
	}
}

func (f Fleet) servers() []sim.Server {
	var all []sim.Server
	for _, s := range f.Servers {
		for range s.Count {
			all = append(all, s.server())
		}
	}
	return all
}

func (s FleetServer) server() sim.Server {
	to := sim.Server{Queue: s.Queue, Latency: s.latency(), Here: []sim.Span{{From: s.Joins.Microseconds(), Until: sim.Never}}}
	if s.Leaves != 0 {
		to.Here[0].Until = s.Leaves.Microseconds()
	}
	for _, t := range s.Trouble {
		w := sim.Window{Span: sim.Span{From: t.From.Microseconds(), Until: t.Until.Microseconds()}}
		switch t.Kind {
		case "slow":
			w.Slow = t.Factor
		case "fail":
			w.Fails, w.FailsIn = t.Share, float64(t.After.Microseconds())
		case "hang":
			w.Hangs = true
		}
		to.Windows = append(to.Windows, w)
	}
	return to
}

func (s FleetServer) quantiles() []sim.Quantile {
	var points []sim.Quantile
	for at, latency := range s.Quantiles {
		points = append(points, sim.Quantile{At: at, Latency: float64(latency.Microseconds())})
	}
	slices.SortFunc(points, func(a, b sim.Quantile) int {
		if a.At < b.At {
			return -1
		}
		return 1
	})
	return points
}

func (s FleetServer) latency() sim.Latency {
	mean := float64(s.Latency.Microseconds())
	switch {
	case s.Quantiles != nil:
		return sim.Quantiles(s.quantiles())
	case s.Spread == "constant":
		return sim.Constant(mean)
	case s.Spread == "uniform":
		return sim.Quantiles([]sim.Quantile{{At: 0, Latency: 0}, {At: 1, Latency: 2 * mean}})
	}
	return sim.Exponential(mean)
}

func yourOwn() Scenario {
	f, err := ParseFleet("fleet.example.yaml", exampleFleet)
	if err != nil {
		panic(err) // the file is part of the program
	}
	s := f.Scenario()
	s.About = "what belfry lab advise takes as an example"
	return s
}
