package discover

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// MaxWeight is the largest weight that a file or a target may give.
const MaxWeight = 1_000_000

// MaxPriority is the largest priority that a file or a target may give.
const MaxPriority = 100

// OnHost returns the host of the endpoint: Host, or else the host in Addr, or Addr itself if that is of a form of its own.
func (c Change) OnHost() string {
	if c.Host != "" {
		return c.Host
	}
	addr := c.Addr
	if _, rest, found := strings.Cut(addr, "://"); found {
		addr = rest
		if end := strings.IndexAny(addr, "/?#"); end >= 0 {
			addr = addr[:end]
		}
	}
	if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
		return host
	}
	if addr == "" {
		return c.Addr
	}
	return addr
}

// attributes is what a file or a target says about endpoints beside the address. What is not said is zero.
type attributes struct {
	weight   int
	zone     string
	priority int
	host     string
	ranked   bool // there is a priority
}

// over returns c with what a says in place of what c has.
func (a attributes) over(c Change) Change {
	if a.weight != 0 {
		c.Weight = a.weight
	}
	if a.zone != "" {
		c.Zone = a.zone
	}
	if a.host != "" {
		c.Host = a.host
	}
	if a.ranked {
		c.Priority = a.priority
	}
	return c
}

// AcceptedAttributes says in words what may follow an address.
const AcceptedAttributes = "weight=1 to 1000000, zone=name, priority=0 to 100 or host=name"

// Attributes splits the text of a target into its address and what is said of it, as [Parse] does; give gives that to an endpoint. It is for
// programs that read addresses in forms of their own. The error says what is wrong with what follows the address.
func Attributes(text string) (addr string, give func(Change) Change, err error) {
	addr, a, err := splitAttributes(text)
	return addr, a.over, err
}

// splitAttributes cuts text into the address and the words behind it, such as weight=2. Of what comes before these it says nothing: the
// path of a file may have spaces.
func splitAttributes(text string) (addr string, a attributes, err error) {
	seen := map[string]bool{}
	for addr = text; ; {
		rest := strings.TrimRight(addr, " \t")
		at := strings.LastIndexAny(rest, " \t")
		name, v, found := strings.Cut(rest[at+1:], "=")
		if at < 0 || !found || strings.ContainsAny(name, ":/?") {
			return addr, a, nil
		}
		if seen[name] {
			return "", a, fmt.Errorf("%s is there twice", name)
		}
		seen[name] = true
		if err := a.set(name, v); err != nil {
			return "", a, err
		}
		addr = strings.TrimRight(rest[:at], " \t")
	}
}

// set reads one attribute.
func (a *attributes) set(name, text string) error {
	switch name {
	case "weight":
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxWeight {
			return fmt.Errorf("weight must be 1 to %d, got %q", MaxWeight, text)
		}
		a.weight = n
	case "priority":
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > MaxPriority {
			return fmt.Errorf("priority must be 0 to %d, got %q", MaxPriority, text)
		}
		a.priority, a.ranked = n, true
	case "zone":
		a.zone = text
	case "host":
		a.host = text
	default:
		return fmt.Errorf("%q is not known, accepted are %s", name, AcceptedAttributes)
	}
	if text == "" {
		return fmt.Errorf("%s must not be empty", name)
	}
	return printable(text)
}

// parseEndpoint returns the endpoint that a line describes.
func parseEndpoint(scheme, line string) (Change, error) {
	text, a, err := splitAttributes(line)
	if err != nil {
		return Change{}, err
	}
	addr, err := spell(scheme, text)
	if err != nil {
		return Change{}, err
	}
	return a.over(Insert(addr)), nil
}
