package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/dustin/go-humanize"
)

// frame is the time between two pictures: fast enough to look alive, slow enough to read.
const frame = 200 * time.Millisecond

// live draws b on a terminal until finished is closed. Ctrl-C calls stop: the terminal sends it as a key while we draw.
func live(w io.Writer, b *board, st styles, stop func(), finished <-chan struct{}) error {
	program := tea.NewProgram(&screen{board: b, styles: st, stop: stop, width: 80}, tea.WithOutput(w), tea.WithoutSignalHandler())
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-finished:
			program.Send(ended{})
		case <-over:
		}
	}()
	_, err := program.Run()
	return err
}

// tick is when the next picture is due; ended says that there is nothing more to show.
type (
	tick  time.Time
	ended struct{}
)

// A screen is the picture and what it needs to know between two of them.
type screen struct {
	board  *board
	styles styles
	stop   func()
	width  int

	now      time.Time
	rate     meter
	stopping bool
	ended    bool
}

func (s *screen) Init() tea.Cmd { return next() }

func next() tea.Cmd {
	return tea.Tick(frame, func(now time.Time) tea.Msg { return tick(now) })
}

func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tick:
		s.now = time.Time(msg)
		return s, next()
	case tea.WindowSizeMsg:
		s.width = msg.Width
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+c" {
			s.stopping = true
			s.stop()
		}
	case ended:
		s.ended = true
		return s, tea.Quit
	}
	return s, nil
}

// View is empty at the end: what follows says it all again, and better.
func (s *screen) View() tea.View {
	if s.ended || s.now.IsZero() {
		return tea.NewView("")
	}
	v := s.board.view(s.now)
	return tea.NewView(s.draw(v, s.rate.observe(v.started, s.now, v.sent)))
}

// draw makes the picture of v.
func (s *screen) draw(v view, rate float64) string {
	var b strings.Builder
	for _, p := range v.done {
		fmt.Fprintf(&b, "%s %-*s  %s\n", s.styles.good.Render("✓"), nameWidth, p.Name, summary(p))
	}
	if !v.running {
		return b.String()
	}
	fmt.Fprintf(&b, "\n%s  policy %d of %d, %s\n", s.styles.title.Render(v.policy), v.number, len(policies), s.phase(v))
	fmt.Fprintf(&b, "%s\n\n", counts(v, rate))
	b.WriteString(tidy(grid(s.styles, []string{"endpoint", "requests", "share", "p50", "p99", "in flight", barHeader}, s.rows(v)).Render()))
	b.WriteString(s.styles.faint.Render("Ctrl-C stops and shows what was measured"))
	return b.String()
}

func (s *screen) phase(v view) string {
	left := s.board.plan.Run - v.elapsed
	switch {
	case s.stopping:
		return "stopping: waiting for the last answers"
	case left <= 0:
		return "waiting for the last answers"
	}
	return fmt.Sprintf("%.1f s left", left.Seconds())
}

// rows pads its cells to one width, so that columns stand still while numbers grow.
func (s *screen) rows(v view) [][]string {
	var rows [][]string
	for _, r := range v.rows {
		rows = append(rows, []string{
			r.label, fmt.Sprintf("%9s", humanize.Comma(r.answers)), fmt.Sprintf("%7s", percent(r.share)),
			fmt.Sprintf("%9s", orNone(r.p50)), fmt.Sprintf("%9s", orNone(r.p99)), fmt.Sprint(r.inFlight),
			bar(r.share, s.width-tableWidth),
		})
	}
	return rows
}

const (
	// tableWidth is what the live table takes without the bars.
	tableWidth = 72
	// fullBar is the share that a whole bar stands for: the same for all policies, so that they can be compared by eye.
	fullBar = 0.5
)

// bar draws a share in room cells, 40 at most, or not at all where there is hardly room. It fills them with spaces, so that the
// line under the headers stands still too.
func bar(share float64, room int) string {
	room = min(room, 40)
	if room < 4 {
		return ""
	}
	eighths := int(min(share/fullBar, 1)*float64(room*8) + 0.5)
	parts := []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}
	return fmt.Sprintf("%-*s", room, strings.Repeat("█", eighths/8)+parts[eighths%8])
}
