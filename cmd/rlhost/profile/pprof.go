package profile

import (
	"compress/gzip"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rlhost/rlhost/plugins/wasm/guest"
)

// Fields of the messages of pprof's profile.proto.
const (
	profileSampleType  = 1
	profileSample      = 2
	profileLocation    = 4
	profileFunction    = 5
	profileString      = 6
	profileDuration    = 10
	profilePeriodType  = 11
	profilePeriod      = 12
	typeType           = 1
	typeUnit           = 2
	sampleLocation     = 1
	sampleValue        = 2
	locationID         = 1
	locationLine       = 4
	lineFunction       = 1
	lineLine           = 2
	functionID         = 1
	functionName       = 2
	functionSystemName = 3
	functionFile       = 4
)

// pprof builds one profile.
type pprof struct {
	out       []byte
	strings   map[string]uint64
	text      []byte // of the strings
	functions map[[2]string]uint64
	locations map[guest.Place]uint64
}

// WritePprof writes the profile for go tool pprof: samples and nanoseconds of each stack, the innermost function first.
func (r *Result) WritePprof(to io.Writer) error {
	p := &pprof{strings: map[string]uint64{}, functions: map[[2]string]uint64{}, locations: map[guest.Place]uint64{}}
	p.string("")
	nanoseconds := p.valueType("time", "nanoseconds")
	p.message(profileSampleType, p.valueType("samples", "count"))
	p.message(profileSampleType, nanoseconds)
	for _, s := range r.Stacks {
		var locations, m []byte
		for _, place := range s.Places {
			locations = protowire.AppendVarint(locations, p.location(place))
		}
		m = protowire.AppendBytes(protowire.AppendTag(m, sampleLocation, protowire.BytesType), locations)
		values := protowire.AppendVarint(protowire.AppendVarint(nil, uint64(s.Samples)), uint64(s.Time.Nanoseconds()))
		m = protowire.AppendBytes(protowire.AppendTag(m, sampleValue, protowire.BytesType), values)
		p.message(profileSample, m)
	}
	p.out = number(p.out, profileDuration, uint64(r.Time.Nanoseconds()))
	p.message(profilePeriodType, nanoseconds)
	p.out = number(p.out, profilePeriod, uint64(r.Time.Nanoseconds()/int64(max(r.Samples, 1))))
	zip := gzip.NewWriter(to)
	if _, err := zip.Write(append(p.out, p.text...)); err != nil {
		return err
	}
	return zip.Close()
}

// number appends a field.
func number(to []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), v)
}

func (p *pprof) message(field protowire.Number, m []byte) {
	p.out = protowire.AppendBytes(protowire.AppendTag(p.out, field, protowire.BytesType), m)
}

// string returns the index of a string in the profile's table.
func (p *pprof) string(s string) uint64 {
	s = strings.ToValidUTF8(s, "?")
	i, known := p.strings[s]
	if !known {
		i = uint64(len(p.strings))
		p.strings[s] = i
		p.text = protowire.AppendString(protowire.AppendTag(p.text, profileString, protowire.BytesType), s)
	}
	return i
}

func (p *pprof) valueType(what, unit string) []byte {
	return number(number(nil, typeType, p.string(what)), typeUnit, p.string(unit))
}

// location returns the number of a place.
func (p *pprof) location(place guest.Place) uint64 {
	if id := p.locations[place]; id > 0 {
		return id
	}
	id := uint64(len(p.locations) + 1)
	p.locations[place] = id
	file, line := place.Line, 0
	if at := strings.LastIndexByte(place.Line, ':'); at >= 0 {
		file = place.Line[:at]
		line, _ = strconv.Atoi(place.Line[at+1:]) // the sandbox has written it
	}
	m := number(number(nil, lineFunction, p.function(place.Function, file)), lineLine, uint64(line))
	p.message(profileLocation, protowire.AppendBytes(protowire.AppendTag(number(nil, locationID, id), locationLine, protowire.BytesType), m))
	return id
}

// function returns the number of a function.
func (p *pprof) function(name, file string) uint64 {
	key := [2]string{name, file}
	if id := p.functions[key]; id > 0 {
		return id
	}
	id := uint64(len(p.functions) + 1)
	p.functions[key] = id
	m := number(nil, functionID, id)
	m = number(number(m, functionName, p.string(name)), functionSystemName, p.string(name))
	p.message(profileFunction, number(m, functionFile, p.string(file)))
	return id
}
