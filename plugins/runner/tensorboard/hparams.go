package tensorboard

import (
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// HParams are what TensorBoard's plugin hparams shows of a run: its hyper-parameters, and the tags of the scalars that it is judged by.
type HParams struct {
	Values  map[string]any // float64, bool or string, by name
	Metrics []string
}

// Tags and fields of the plugin's messages: HParamsPluginData, SessionStartInfo, Experiment, HParamInfo, MetricInfo and MetricName of
// tensorboard/plugins/hparams, Value of google/protobuf/struct.proto, and SummaryMetadata of framework/summary.proto.
const (
	tagExperiment = "_hparams_/experiment"
	tagStart      = "_hparams_/session_start_info"
	pluginHParams = "hparams"

	valueMetadata     = 9 // SummaryMetadata
	metadataPlugin    = 1 // PluginData
	pluginName        = 1
	pluginContent     = 2
	dataExperiment    = 2
	dataStart         = 3
	startHParams      = 1 // map of google.protobuf.Value
	startTime         = 5 // double
	experimentCreated = 3 // double
	experimentHParams = 4 // repeated HParamInfo
	experimentMetrics = 5 // repeated MetricInfo
	hparamName        = 1
	hparamType        = 4
	metricName        = 1 // MetricName
	nameTag           = 2
	mapKey, mapValue  = 1, 2
	ofNumber          = 2 // fields of Value
	ofString          = 3
	ofBool            = 4
	typeString        = 1 // of HParamInfo
	typeBool          = 2
	typeFloat         = 3
)

// AppendHParams appends the records that describe a run to dst. They are written once, before any scalar.
func AppendHParams(dst []byte, now time.Time, h HParams) []byte {
	seconds := math.Float64bits(float64(now.UnixMicro()) / 1e6)
	experiment := protowire.AppendFixed64(protowire.AppendTag(nil, experimentCreated, protowire.Fixed64Type), seconds)
	start := protowire.AppendFixed64(protowire.AppendTag(nil, startTime, protowire.Fixed64Type), seconds)
	for _, name := range slices.Sorted(maps.Keys(h.Values)) {
		kind, value := valueOf(h.Values[name])
		info := protowire.AppendString(protowire.AppendTag(nil, hparamName, protowire.BytesType), name)
		info = protowire.AppendVarint(protowire.AppendTag(info, hparamType, protowire.VarintType), kind)
		experiment = nested(experiment, experimentHParams, info)
		entry := protowire.AppendString(protowire.AppendTag(nil, mapKey, protowire.BytesType), name)
		start = nested(start, startHParams, nested(entry, mapValue, value))
	}
	for _, tag := range h.Metrics {
		name := protowire.AppendString(protowire.AppendTag(nil, nameTag, protowire.BytesType), tag)
		experiment = nested(experiment, experimentMetrics, nested(nil, metricName, name))
	}
	dst = appendPlugin(dst, now, tagExperiment, nested(nil, dataExperiment, experiment))
	return appendPlugin(dst, now, tagStart, nested(nil, dataStart, start))
}

// valueOf returns the type and the message of a value.
func valueOf(v any) (kind uint64, message []byte) {
	switch v := v.(type) {
	case float64:
		return typeFloat, protowire.AppendFixed64(protowire.AppendTag(nil, ofNumber, protowire.Fixed64Type), math.Float64bits(v))
	case bool:
		return typeBool, protowire.AppendVarint(protowire.AppendTag(nil, ofBool, protowire.VarintType), protowire.EncodeBool(v))
	}
	text, _ := v.(string)
	return typeString, protowire.AppendString(protowire.AppendTag(nil, ofString, protowire.BytesType), text)
}

func nested(dst []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), message)
}

// appendPlugin appends a record of step 0 with a summary that has data of the plugin and no value.
func appendPlugin(dst []byte, now time.Time, tag string, data []byte) []byte {
	plugin := protowire.AppendString(protowire.AppendTag(nil, pluginName, protowire.BytesType), pluginHParams)
	plugin = nested(plugin, pluginContent, data)
	value := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), tag)
	value = nested(value, valueMetadata, nested(nil, metadataPlugin, plugin))
	return appendRecord(dst, nested(wallTime(now), eventSummary, nested(nil, summaryValue, value)))
}
