// quamina: a pattern per filter, one event at a time from JSON text.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"quamina.net/go/quamina/v2"
)

type test struct {
	Attribute string          `json:"attribute"`
	Op        string          `json:"op"`
	Value     json.RawMessage `json:"value"`
}

type filter struct {
	ID    int    `json:"id"`
	Tests []test `json:"tests"`
}

type answer struct {
	System       string  `json:"system"`
	Version      string  `json:"version"`
	Filters      int     `json:"filters"`
	BuildSeconds float64 `json:"build_seconds"`
	Events       int     `json:"events"`
	Matches      int     `json:"matches"`
	Seconds      float64 `json:"seconds"`
	UsPerEvent   float64 `json:"us_per_event"`
	P50          float64 `json:"p50_us"`
	P99          float64 `json:"p99_us"`
}

func main() {
	filters := lines(os.Args[1])
	events := lines(os.Args[2])
	warmUp := seconds(os.Args[3])
	limit := seconds(os.Args[4])

	start := time.Now()
	q, err := quamina.New()
	check(err)
	for _, line := range filters {
		var one filter
		check(json.Unmarshal(line, &one))
		check(q.AddPattern(one.ID, pattern(one.Tests)))
	}
	build := time.Since(start).Seconds()

	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		pass(q, events, warmUp)
		spent, matches, taken := pass(q, events, limit)
		slices.Sort(spent)
		micros := func(at int) float64 { return float64(spent[at].Nanoseconds()) / 1e3 }
		out, err := json.Marshal(answer{
			System:       "quamina",
			Version:      version(),
			Filters:      len(filters),
			BuildSeconds: build,
			Events:       len(spent),
			Matches:      matches,
			Seconds:      taken.Seconds(),
			UsPerEvent:   taken.Seconds() * 1e6 / float64(len(spent)),
			P50:          micros(len(spent) / 2),
			P99:          micros(len(spent) * 99 / 100),
		})
		check(err)
		fmt.Println(string(out))
	}
}

// All events once, or as many as the time allows.
func pass(q *quamina.Quamina, events [][]byte, limit time.Duration) ([]time.Duration, int, time.Duration) {
	spent := make([]time.Duration, 0, len(events))
	matches := 0
	start := time.Now()
	for _, event := range events {
		begun := time.Now()
		if begun.Sub(start) > limit {
			break
		}
		found, err := q.MatchesForEvent(event)
		check(err)
		matches += len(found)
		spent = append(spent, time.Since(begun))
	}
	return spent, matches, time.Since(start)
}

// A pattern in quamina's language: {"a": ["text"], "b": [{"prefix": "te"}]}.
func pattern(tests []test) string {
	fields := make(map[string][]any, len(tests))
	for _, one := range tests {
		var value any = one.Value
		var text string
		if one.Op != "=" {
			check(json.Unmarshal(one.Value, &text))
		}
		switch one.Op {
		case "=":
		case "prefix":
			value = map[string]string{"prefix": text}
		case "suffix":
			value = map[string]string{"shellstyle": "*" + text}
		case "like":
			value = map[string]string{"shellstyle": strings.ReplaceAll(text, "%", "*")}
		default:
			panic("quamina can't test " + one.Op)
		}
		fields[one.Attribute] = []any{value}
	}
	out, err := json.Marshal(fields)
	check(err)
	return string(out)
}

func lines(path string) [][]byte {
	text, err := os.ReadFile(path)
	check(err)
	return bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
}

func seconds(text string) time.Duration {
	number, err := strconv.ParseFloat(text, 64)
	check(err)
	return time.Duration(number * float64(time.Second))
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if strings.HasPrefix(module.Path, "quamina.net/") {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "?"
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
