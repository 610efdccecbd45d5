package main

// A target is a figure, and what it should be.
type target struct {
	job, what string
	figure    figure
	unit      string
	bound     bound
	limit     float64
	// absolute says that the figure depends on the machine, so that the limit is for orientation.
	absolute bool
}

type bound string

const (
	atMost  bound = "≤"
	atLeast bound = "≥"
	shown   bound = "" // nothing is asked
)

func (t target) met(measured float64) bool {
	switch t.bound {
	case atMost:
		return measured <= t.limit
	case atLeast:
		return measured >= t.limit
	case shown:
	}
	return true
}

// targets is what belfry wants to be, job by job.
func targets() []target {
	var list []target
	add := func(more ...target) { list = append(list, more...) }

	const do, five = "Do/success/serial/belfry", "Do/success,five-layers/serial/belfry"
	perLayer := by(minus(ns(five), ns(do)), 5)
	perFunction := by(minus(ns("Do/success,five-layers/serial/functions"), ns("Do/success/serial/function")), 5)
	add(cost("Do over a function", do, 8, 0)...)
	add(
		target{"each further layer", "time", perLayer, "ns", atMost, 5, true},
		target{"each further layer", "a function around a function: time", perFunction, "ns", shown, 0, true},
		target{"each further layer", "allocations", allocs(five), "", atMost, 0, false},
	)

	add(cost("concurrency limit", "Limit/success/serial/belfry", 40, 0)...)
	add(
		times("concurrency limit", "x/sync semaphore", "Limit/success/serial/", "semaphore", 0),
		times("concurrency limit", "failsafe-go", "Limit/success/serial/", "failsafe", 0),
		times("concurrency limit", "tower", "Limit/success/serial/", "tower", 0),
	)
	add(cost("shed over limit", "Shed/success/serial/belfry", 55, 0)...)
	add(times("shed over limit", "tower", "Shed/success/serial/", "tower", 0))

	const timeout, watched = "Timeout/unwatched/serial/", "Timeout/watched/serial/"
	add(cost("timeout, nobody asks for Done", timeout+"belfry", 130, 1)...)
	add(
		times("timeout, nobody asks for Done", "failsafe-go", timeout, "failsafe", 8),
		times("timeout, nobody asks for Done", "context.WithTimeout", timeout, "context", 0),
		times("timeout, nobody asks for Done", "tower", timeout, "tower", 0),
		target{"timeout, somebody asks for Done", "time beyond context.WithTimeout", minus(ns(watched+"belfry"), ns(watched+"context")), "ns", atMost, 100, true},
		target{"timeout, somebody asks for Done", "allocations beyond context.WithTimeout", minus(allocs(watched+"belfry"), allocs(watched+"context")), "", atMost, 1, false},
		target{"timeout, somebody asks for Done", "tower, a leaf that yields, as many times as long", over(ns("Timeout/yields/serial/tower"), ns(watched+"belfry")), "x", shown, 0, false},
	)

	add(cost("retry, success, with budget", "Retry/success/serial/belfry", 70, 1)...)
	add(
		times("retry, success, with budget", "failsafe-go", "Retry/success/serial/", "failsafe", 10),
		times("retry, success, with budget", "backoff", "Retry/success/serial/", "backoff", 0),
		times("retry, success, with budget", "tower", "Retry/success/serial/", "tower", 0),
	)
	add(cost("rate limit", "Rate/success/serial/belfry", 70, 0)...)
	add(
		times("rate limit", "x/time/rate", "Rate/success/serial/", "x-time-rate", 0),
		times("rate limit", "uber-go/ratelimit", "Rate/success/serial/", "uber-ratelimit", 0),
		times("rate limit", "failsafe-go", "Rate/success/serial/", "failsafe", 0),
		times("rate limit", "tower", "Rate/success/serial/", "tower", 0),
	)
	add(cost("buffer, not full", "Buffer/success/serial/belfry", 50, 0)...)
	add(times("buffer, not full", "tower", "Buffer/success/serial/", "tower", 5))
	add(cost("breaker, closed", "Breaker/success/serial/belfry", 60, 0)...)
	add(
		times("breaker, closed", "gobreaker", "Breaker/success/serial/", "gobreaker", 2),
		times("breaker, closed", "failsafe-go", "Breaker/success/serial/", "failsafe", 0),
	)
	add(cost("hedge, none sent", "Hedge/success/serial/belfry", 500, 4)...)
	add(
		times("hedge, none sent", "failsafe-go", "Hedge/success/serial/", "failsafe", 5),
		target{
			"hedge, none sent", "failsafe-go, as many times as long as a detached one",
			over(ns("Hedge/success/serial/failsafe"), ns("Hedge/success/serial/belfry,detached")), "x", shown, 0, false,
		},
	)

	for _, metric := range []struct {
		job, name string
		ns, times float64
	}{{"balance by requests in flight", "pending", 55, 4}, {"balance by the default cost", "latency", 180, 3}} {
		for _, n := range []string{"3", "10", "100", "1000"} {
			mode := "Balance/" + metric.name + "-" + n + "/serial/"
			add(cost(metric.job+", "+n+" endpoints", mode+"belfry", metric.ns, 0)...)
			add(times(metric.job+", "+n+" endpoints", "tower", mode, "tower", metric.times))
		}
		mode := "Balance/" + metric.name + "-10000/serial/belfry"
		add(cost(metric.job+", 10,000 endpoints", mode, metric.ns, 0)...)
	}
	add(target{
		"balance by requests in flight", "10,000 endpoints against three",
		over(ns("Balance/pending-10000/serial/belfry"), ns("Balance/pending-3/serial/belfry")), "x", atMost, 1.3, false,
	})

	add(cost("full stack", "Stack/success/serial/belfry", 400, 3)...)
	add(
		times("full stack", "tower", "Stack/success/serial/", "tower", 1.7),
		target{"full stack, 64 callers", "tower on one thread, as many times as long", over(ns("Stack/success/parallel/tower"), ns("Stack/success/parallel/belfry")), "x", shown, 0, false},
		target{"full stack, 64 callers", "throughput of tower's on two threads, ours as many times", over(ns("Stack/success/parallel/tower-2"), ns("Stack/success/parallel/belfry-2")), "x", atLeast, 4, false},
	)
	add(cost("four policies", "Policies/success/serial/belfry", 300, 2)...)
	add(times("four policies", "failsafe-go", "Policies/success/serial/", "failsafe", 7))

	gain := func(name string) figure { return over(ns(name), ns(name+"-2")) }
	add(
		target{"two processors, 100 endpoints, a microsecond of work", "gain against that of the work alone", over(gain("Scaling/balance/parallel/belfry"), gain("Scaling/none/parallel/function")), "x", atLeast, 0.9, false},
		target{"two processors, 100 endpoints, a microsecond of work", "tower: gain against that of the work alone", over(gain("Scaling/balance/parallel/tower"), gain("Scaling/none/parallel/tower")), "x", shown, 0, false},
		target{"64 callers, 1000 endpoints, 990 not ready", "pick and call", ns("Unready/ten-of-1000/parallel/belfry-2"), "ns", atMost, 5000, true},
		target{"64 callers, 1000 endpoints, none ready", "share of a processor while they wait", value("Unready/none-of-1000/parallel/belfry-2", "%cpu"), "%", atMost, 2, false},
		target{"10,000 callers, a limit of ten", "hand-off", ns("HandOff/success/parallel/belfry-2"), "ns", atMost, 1000, true},
		target{"10,000 callers, a limit of ten", "x/sync semaphore, as many times as long", over(ns("HandOff/success/parallel/semaphore-2"), ns("HandOff/success/parallel/belfry-2")), "x", shown, 0, false},
	)
	memory := func(name, unit string) figure { return value("Memory/"+name, unit) }
	add(
		target{"memory", "an idle endpoint", memory("endpoint/serial/belfry", "B/endpoint"), "B", atMost, 1024, false},
		target{"memory", "a waiter of a limit, beyond its goroutine", memory("limit/serial/belfry", "B/waiter"), "B", atMost, 256, false},
		target{"memory", "a waiter of x/sync semaphore", memory("limit/serial/semaphore", "B/waiter"), "B", shown, 0, false},
		target{"memory", "a waiter of a buffer", memory("buffer/serial/belfry", "B/waiter"), "B", atMost, 256, false},
		target{"memory", "a waiter of a buffer with MaxWait", memory("buffer,max-wait/serial/belfry", "B/waiter"), "B", atMost, 256, false},
		target{"memory", "a waiter of a rate limit", memory("rate/serial/belfry", "B/waiter"), "B", atMost, 256, false},
		target{"memory", "a waiter of a balancer", memory("balance/serial/belfry", "B/waiter"), "B", atMost, 256, false},
		target{"memory", "a waiter of a balancer: by how much its goroutine's stack grows", memory("balance/serial/belfry", "stack-B/waiter"), "B", shown, 0, false},
	)
	for _, over := range []string{"fake", "loopback"} {
		ours, bare := "HTTP/"+over+"/serial/belfry", "HTTP/"+over+"/serial/http-client"
		job, time, each := "HTTP client over a transport that answers by itself", ns, ",each"
		if over == "loopback" {
			job, time, each = "HTTP client over loopback", func(name string) figure { return value(name, "p50-ns") }, ""
		}
		slow := func(contender string) figure { return value("HTTP/"+over+each+"/serial/"+contender, "p99-ns") }
		add(
			target{job, "time beyond http.Client", minus(time(ours), time(bare)), "ns", shown, 0, true},
			target{job, "allocations beyond http.Client", minus(allocs(ours), allocs(bare)), "", shown, 0, false},
			target{job, "http.Client: 99th percentile", slow("http-client"), "ns", shown, 0, true},
			target{job, "belfry: 99th percentile", slow("belfry"), "ns", shown, 0, true},
		)
	}
	return list
}

// cost is what a call may take and allocate.
func cost(job, name string, most, allocations float64) []target {
	return []target{
		{job, "time", ns(name), "ns", atMost, most, true},
		{job, "allocations", allocs(name), "", atMost, allocations, false},
	}
}

// times is how many times as long a peer takes, at least; 0 asks nothing.
func times(job, peer, mode, contender string, least float64) target {
	t := target{job, peer + ", as many times as long", over(ns(mode+contender), ns(mode+"belfry")), "x", atLeast, least, false}
	if least == 0 {
		t.bound = shown
	}
	return t
}
