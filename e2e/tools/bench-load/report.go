package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// row is one figure of the table; value returns false where a run has no such figure.
type row struct {
	title string
	value func(result) (float64, bool)
}

func positive(value float64) (float64, bool) { return value, value > 0 }

// perClaim divides what was used between two readings by the number of claims, in milliseconds.
func perClaim(r result, from, to usage, runs bool) (float64, bool) {
	if r.Claims < 20 || !runs {
		return 0, false
	}
	return 1000 * (to.CPUSeconds - from.CPUSeconds) / float64(r.Claims), true
}

func sum(counts map[string]int, keep func(string) bool) float64 {
	total := 0
	for key, count := range counts {
		if keep(key) {
			total += count
		}
	}
	return float64(total)
}

// writes accepts requests that change something other than events.
func writes(key string) bool {
	verb, rest, _ := strings.Cut(key, " ")
	return slices.Contains([]string{"create", "update", "patch", "delete"}, verb) && !strings.HasPrefix(rest, "events ")
}

var rows = []row{
	{"start until metrics page, s", func(r result) (float64, bool) { return positive(r.Ready) }},
	{"start until first CreateVolume, s", func(r result) (float64, bool) { return r.FirstCreate, r.Scenario == "start" && r.FirstCreate > 0 }},
	{"API server's CPU for the start, s", func(r result) (float64, bool) { return positive(r.ServerStart) }},
	{"CPU until idle, s", func(r result) (float64, bool) { return positive(r.Idle.CPUSeconds) }},
	{"memory idle, MiB", func(r result) (float64, bool) { return positive(r.Idle.RSSMiB) }},
	{"memory at the end, MiB", func(r result) (float64, bool) { return positive(r.End.RSSMiB) }},
	{"memory peak, MiB", func(r result) (float64, bool) { return positive(r.End.PeakMiB) }},
	{"CPU while observed, s", func(r result) (float64, bool) { return r.After.CPUSeconds - r.Idle.CPUSeconds, r.Claims == 0 }},
	{"all bound after, s", func(r result) (float64, bool) { return r.AllBound, r.Scenario != "start" && r.Bound > 0 }},
	{"last volume saved after, s", func(r result) (float64, bool) { return last(r.Created, r.Claims > 1) }},
	{"volumes per second", func(r result) (float64, bool) {
		if r.Created == nil || r.Claims < 2 {
			return 0, false
		}
		return r.Created.PerSecond, true
	}},
	{"CPU per claim, ms", func(r result) (float64, bool) { return perClaim(r, r.Idle, r.After, true) }},
	{"all deleted after, s", func(r result) (float64, bool) { return positive(r.AllDeleted) }},
	{"CPU per deleted volume, ms", func(r result) (float64, bool) { return perClaim(r, r.After, r.End, r.AllDeleted > 0) }},
	{"CreateVolume calls", func(r result) (float64, bool) { return float64(r.Driver["CreateVolume"]), r.Claims > 0 }},
	{"DeleteVolume calls", func(r result) (float64, bool) { return float64(r.Driver["DeleteVolume"]), r.AllDeleted > 0 }},
	{"API requests", func(r result) (float64, bool) { return sum(r.Calls, func(string) bool { return true }), true }},
	{"API writes without events", func(r result) (float64, bool) { return sum(r.Calls, writes), r.Claims > 0 }},
	{"API errors", func(r result) (float64, bool) {
		return sum(r.Calls, func(key string) bool { return key[strings.LastIndexByte(key, ' ')+1] >= '4' }), true
	}},
	{"events delivered", func(r result) (float64, bool) { return sum(r.Events, func(string) bool { return true }), r.Claims > 0 }},
	{"stopped after, s", func(r result) (float64, bool) { return positive(r.Stop) }},
	{"CPU in all, s", func(r result) (float64, bool) { return positive(r.Total.CPUSeconds) }},
	{"API server's CPU in all, s", func(r result) (float64, bool) { return positive(r.ServerTotal) }},
}

func last(s *spread, asked bool) (float64, bool) {
	if s == nil || !asked {
		return 0, false
	}
	return s.Last, true
}

// writeTable writes one Markdown table per scenario: medians over the rounds, and the ratio of each further
// candidate to the first.
func writeTable(out io.Writer, labels []string, results []result) {
	for _, name := range scenariosOf(results) {
		example := results[slices.IndexFunc(results, func(r result) bool { return r.Scenario == name })]
		fmt.Fprintf(out, "\n### %s: %d claims among %d foreign\n\n| |", name, example.Claims, example.Preload)
		for i, label := range labels {
			fmt.Fprintf(out, " %s |", label)
			if i > 0 {
				fmt.Fprintf(out, " %s / %s |", label, labels[0])
			}
		}
		fmt.Fprintf(out, "\n|---|%s\n", strings.Repeat("--:|", 2*len(labels)-1))
		for _, figure := range rows {
			writeRow(out, figure, name, labels, results)
		}
		for _, key := range callsOf(results, name) {
			writeRow(out, row{"`" + key + "`", func(r result) (float64, bool) { return float64(r.Calls[key]), true }}, name, labels, results)
		}
		for _, r := range results {
			if r.Scenario == name && r.Failure != "" {
				fmt.Fprintf(out, "\n**%s, round %d: %s**\n", r.Candidate, r.Round, r.Failure)
			}
		}
	}
}

func writeRow(out io.Writer, figure row, scenario string, labels []string, results []result) {
	cells, base, any := "", 0.0, false
	for i, label := range labels {
		values := []float64{}
		for _, r := range results {
			if r.Scenario != scenario || r.Candidate != label {
				continue
			}
			if value, ok := figure.value(r); ok {
				values = append(values, value)
			}
		}
		middle, text, ratio := 0.0, "-", "-"
		if len(values) > 0 {
			slices.Sort(values)
			middle, any = values[len(values)/2], true
			text = number(middle)
		}
		if i == 0 {
			base = middle
		} else if base > 0 && len(values) > 0 {
			ratio = number(middle / base)
		}
		cells += " " + text + " |"
		if i > 0 {
			cells += " " + ratio + " |"
		}
	}
	if any {
		fmt.Fprintf(out, "| %s |%s\n", figure.title, cells)
	}
}

// number shows three figures or whole numbers.
func number(value float64) string {
	switch {
	case value == float64(int64(value)):
		return fmt.Sprintf("%.0f", value)
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	case value >= 1:
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.3f", value)
}

// scenariosOf keeps the order in which they ran.
func scenariosOf(results []result) []string {
	names := []string{}
	for _, r := range results {
		if !slices.Contains(names, r.Scenario) {
			names = append(names, r.Scenario)
		}
	}
	return names
}

// callsOf lists the API requests of a scenario, most frequent first.
func callsOf(results []result, scenario string) []string {
	most := map[string]int{}
	for _, r := range results {
		if r.Scenario == scenario {
			for key, count := range r.Calls {
				most[key] = max(most[key], count)
			}
		}
	}
	return slices.SortedFunc(maps.Keys(most), func(a, b string) int {
		return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(a, b))
	})
}
