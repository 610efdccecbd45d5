package discover

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// Types of records and codes of answers (RFC 1035, 2782, 3596).
const (
	typeA    = 1
	typeAAAA = 28
	typeSRV  = 33

	serverFailure = 2
	nameError     = 3
)

// A zone is what a nameServer knows about a name. Its zero value has no records.
type zone struct {
	addrs     []string // as typeA and typeAAAA
	services  []net.SRV
	fail      uint16 // the type of records that it answers with serverFailure
	silent    bool   // it does not answer
	truncated bool   // it has the records by TCP only
}

// A nameServer answers DNS queries on a loopback address, by UDP and TCP.
type nameServer struct {
	t    *testing.T
	addr string

	mu    sync.Mutex
	zones map[string]zone // by name, with a dot at the end
	asked map[string]int  // by network
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	s := &nameServer{t: t, zones: map[string]zone{}, asked: map[string]int{}}
	var running sync.WaitGroup
	packets, streams := listen(t)
	s.addr = packets.LocalAddr().String()
	running.Go(func() { s.servePackets(packets) })
	running.Go(func() { s.serveStreams(streams) })
	t.Cleanup(func() {
		packets.Close()
		streams.Close()
		running.Wait()
	})
	return s
}

// listen takes a port that is free for both.
func listen(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for try := 1; ; try++ {
		streams, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		packets, err := net.ListenPacket("udp", streams.Addr().String())
		if err == nil {
			return packets, streams
		}
		streams.Close()
		if try == 20 {
			t.Fatal(err)
		}
	}
}

// resolver returns one that asks s and nobody else.
func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.addr)
	}}
}

// set changes what is known about a name.
func (s *nameServer) set(name string, z zone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zones[name] = z
}

func (s *nameServer) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.zones, name)
}

// queries returns how many were made over a network.
func (s *nameServer) queries(network string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[network]
}

func (s *nameServer) servePackets(conn net.PacketConn) {
	buf := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if answer := s.answer("udp", buf[:n]); answer != nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

func (s *nameServer) serveStreams(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.serveStream(conn)
	}
}

// serveStream answers one query: messages have their length before them.
func (s *nameServer) serveStream(conn net.Conn) {
	defer conn.Close()
	var length uint16
	if binary.Read(conn, binary.BigEndian, &length) != nil {
		return
	}
	query := make([]byte, length)
	if _, err := io.ReadFull(conn, query); err != nil {
		return
	}
	if answer := s.answer("tcp", query); answer != nil {
		_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	}
}

const headerLen = 12

// answer returns the response to a query of one question, nil for none.
func (s *nameServer) answer(network string, query []byte) []byte {
	if len(query) < headerLen {
		return nil
	}
	name, rest := readName(query[headerLen:])
	if len(rest) < 4 {
		return nil
	}
	kind := binary.BigEndian.Uint16(rest)
	question := query[headerLen : len(query)-len(rest)+4]

	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[network]++
	z, known := s.zones[strings.ToLower(name)]
	var records [][]byte
	code := 0
	truncated := z.truncated && network == "udp"
	switch {
	case z.silent:
		return nil
	case !known:
		code = nameError
	case z.fail == kind:
		code = serverFailure
	case !truncated:
		records = z.records(s.t, kind)
	}
	flags := uint16(1<<15 | 1<<8 | 1<<7 | code) // a response, recursion desired and available
	if truncated {
		flags |= 1 << 9
	}
	answer := append([]byte(nil), query[:2]...)
	for _, n := range []uint16{flags, 1, uint16(len(records)), 0, 0} {
		answer = binary.BigEndian.AppendUint16(answer, n)
	}
	answer = append(answer, question...)
	for _, data := range records {
		answer = append(answer, 0xc0, headerLen) // the name of the question
		answer = binary.BigEndian.AppendUint16(answer, kind)
		answer = binary.BigEndian.AppendUint16(answer, 1) // the Internet
		answer = binary.BigEndian.AppendUint32(answer, 1) // second to live
		answer = binary.BigEndian.AppendUint16(answer, uint16(len(data)))
		answer = append(answer, data...)
	}
	return answer
}

// records returns the data of the records of a type.
func (z *zone) records(t *testing.T, kind uint16) (records [][]byte) {
	for _, addr := range z.addrs {
		ip, err := netip.ParseAddr(addr)
		if err != nil {
			t.Error(err)
			continue
		}
		if ip.Is4() == (kind == typeA) && kind != typeSRV {
			records = append(records, ip.AsSlice())
		}
	}
	for _, srv := range z.services {
		if kind == typeSRV {
			var data []byte
			for _, n := range []uint16{srv.Priority, srv.Weight, srv.Port} {
				data = binary.BigEndian.AppendUint16(data, n)
			}
			records = append(records, appendName(data, srv.Target))
		}
	}
	return records
}

// readName reads a name that is not compressed.
func readName(b []byte) (name string, rest []byte) {
	var labels bytes.Buffer
	for len(b) > 0 && b[0] > 0 && len(b) > int(b[0]) {
		labels.Write(b[1 : 1+b[0]])
		labels.WriteByte('.')
		b = b[1+b[0]:]
	}
	if len(b) == 0 {
		return "", nil
	}
	return labels.String(), b[1:]
}

func appendName(b []byte, name string) []byte {
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label != "" {
			b = append(append(b, byte(len(label))), label...)
		}
	}
	return append(b, 0)
}
