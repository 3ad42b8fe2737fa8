package prometheus

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// families are metrics by their names.
type families map[string]*dto.MetricFamily

// of returns the family of a metric, or nil where its name is one of another kind, or what a summary calls its sum or its count.
func (f families) of(d *description, kind dto.MetricType) *dto.MetricFamily {
	if found := f[d.name]; found != nil {
		if found.GetType() != kind {
			return nil
		}
		return found
	}
	for _, part := range []string{"_sum", "_count"} {
		whole, isPart := strings.CutSuffix(d.name, part)
		if isPart && f[whole].GetType() == dto.MetricType_SUMMARY || kind == dto.MetricType_SUMMARY && f[d.name+part] != nil {
			return nil
		}
	}
	family := &dto.MetricFamily{Name: &d.name, Help: &d.help, Type: &kind}
	f[d.name] = family
	return family
}

// answer writes the families in the form that a request asks for.
func (f families) answer(w http.ResponseWriter, r *http.Request) {
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	w.Header().Set("Content-Type", string(format))
	w.Header().Add("Vary", "Accept")
	w.Header().Add("Vary", "Accept-Encoding")
	var body io.Writer = w
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer func() { _ = z.Close() }()
		body = z
	}
	encoder := expfmt.NewEncoder(body, format)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if err := encoder.Encode(f[name]); err != nil {
			return // nobody reads any more
		}
	}
	if c, ok := encoder.(expfmt.Closer); ok {
		_ = c.Close()
	}
}

// acceptsGzip reports whether a header names gzip, and not with a weight of 0.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(weight, "qQ=.0") != "" || weight == ""
		}
	}
	return false
}
