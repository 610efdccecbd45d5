package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A stage is where a scenario plays: three servers, the proxy in front of them, and requests that come all the time.
type stage struct {
	*testing.T
	servers []*server
	proxy   *proxy
	load    *load
	before  usage // what the proxy had before the first request
	ended   []span
}

// A span is when a server ended.
type span struct{ from, until time.Time }

// end ends a server in one way or the other.
func (s *stage) end(how func()) {
	from := time.Now()
	how()
	s.ended = append(s.ended, span{from, time.Now()})
}

func newStage(t *testing.T, config string) *stage {
	t.Helper()
	s := &stage{T: t, servers: []*server{startServer(t), startServer(t), startServer(t)}}
	s.proxy = startProxy(t, config, s.servers...)
	s.before = s.proxy.usage()
	s.load = startLoad(t, s.proxy.url, *rate, "", 0)
	s.pass()
	return s
}

// pass lets a part of the scenario pass.
func (s *stage) pass() { <-time.After(*phase) }

// leaveNothing ends everything but the proxy, which then must have nothing but what it had before the first request.
func (s *stage) leaveNothing() {
	s.Helper()
	s.load.end()
	for _, server := range s.servers {
		server.terminate()
	}
	eventually(s.T, func() (string, bool) {
		st, now := s.proxy.state(), s.proxy.usage()
		return fmt.Sprintf("in use: %+v, %+v; before the first request: %+v", st, now, s.before), st.held() == 0 && now.within(s.before)
	})
}

// A scenario is what goes wrong, and then no more. Play returns when that was.
type scenario struct {
	name, config string
	play         func(s *stage) (recovered time.Time)
}

var scenarios = []scenario{
	{"nothing goes wrong", "", func(*stage) time.Time { return time.Now() }},
	{"a server is killed and started again", "", func(s *stage) time.Time {
		s.end(s.servers[1].kill)
		s.pass()
		s.servers[1].start()
		return time.Now()
	}},
	{"a server takes 20 times as long", "", misbehave("slow")},
	{"a server answers 503", "", misbehave("unavailable")},
	{"a server resets half way through its answers", "", misbehave("reset")},
	{"a server takes requests and never answers", "timeout: 6s\nretry:\n  attempt_timeout: 2s\n", misbehave("mute")},
	{"all servers are restarted, one after the other", "", restartAll},
	{"a reload removes a server and adds another", "", reload},
}

func misbehave(mood string) func(*stage) time.Time {
	return func(s *stage) time.Time {
		s.servers[1].be(mood)
		s.pass()
		s.servers[1].be("well")
		return time.Now()
	}
}

func restartAll(s *stage) time.Time {
	for _, server := range s.servers {
		s.end(server.terminate)
		server.start()
		<-time.After(*phase / 3)
	}
	return time.Now()
}

// reload exchanges a server, while requests are in flight there.
func reload(s *stage) time.Time {
	s.Helper()
	long := startLoad(s.T, s.proxy.url, 50, "long", 1000)
	<-time.After(500 * time.Millisecond)
	added, removed := startServer(s.T), s.servers[1]
	stay := append(slices.Delete(slices.Clone(s.servers), 1, 2), added)
	long.stop()
	s.proxy.write("", stay...)
	s.proxy.signal(syscall.SIGHUP)
	eventually(s.T, func() (string, bool) {
		st := s.proxy.state()
		return fmt.Sprintf("no reload: %+v", st), st.Config.Generation == 2
	})
	reloaded := time.Now()
	long.end()
	finished := 0
	for _, r := range long.all() {
		if r.Error != "" {
			s.Errorf("a request in flight during the reload failed: %v", r.Error)
		}
		if r.Backend == removed.addr && r.Over.After(reloaded) {
			finished++
		}
	}
	if finished == 0 {
		s.Error("no request was in flight at the server that was removed")
	}
	s.servers = append(stay, removed)
	return reloaded
}

func TestNoRequestFailsThatCouldBeSentAgain(t *testing.T) {
	verdicts := make([]verdict, len(scenarios)+1)
	for i, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, sc.config)
			recovered := sc.play(s)
			fair := s.load.fair(s, recovered, s.servers[:3])
			s.pass()
			s.leaveNothing()
			verdicts[i] = judge(s, sc.name)
			verdicts[i].fair = fair
		})
	}
	t.Run(drained, func(t *testing.T) {
		t.Parallel()
		verdicts[len(scenarios)] = drain(t)
	})
	t.Cleanup(func() { t.Log("\n" + table(verdicts)) })
}

const drained = "the proxy is told to end"

// drain ends the proxy while requests come, from a client that asks /readyz, as those that spread requests over proxies do.
func drain(t *testing.T) verdict {
	t.Helper()
	s := newStage(t, "drain:\n  delay: 2s\n")
	long := startLoad(t, s.proxy.url, 50, "long", 1000)
	s.pass()
	s.proxy.signal(syscall.SIGTERM)
	eventually(t, func() (string, bool) {
		code, text := s.proxy.get("/readyz")
		return text, code == 503
	})
	s.load.stop()
	long.stop()
	if code := s.proxy.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.load.end()
	long.end()
	for _, r := range long.all() {
		if r.Error != "" {
			t.Errorf("a request in flight failed: %v", r.Error)
		}
	}
	if said := s.proxy.said(); !contains(said, "failed=0", "clients_gone=0", "cut_off=0") {
		t.Errorf("the proxy says\n%s", said)
	}
	return judge(s, drained)
}
