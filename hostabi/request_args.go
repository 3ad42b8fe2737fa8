package hostabi

import (
	"reflect"
	"strings"
)

// RequestArgs returns the arguments that a struct is filled from: its exported fields, named by tags such as `json:"lr"`. A field with omitempty or of
// a pointer type is optional; a tag doc:"…" describes it.
func RequestArgs[Q any]() []RequestArg {
	t := reflect.TypeFor[Q]()
	var args []RequestArg
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		a := RequestArg{Name: name, Doc: f.Tag.Get("doc"), Optional: strings.Contains(rest, "omitempty")}
		of := f.Type
		if of.Kind() == reflect.Pointer {
			a.Optional, of = true, of.Elem()
		}
		a.Type = requestTypeOf(of)
		args = append(args, a)
	}
	return args
}

func requestTypeOf(t reflect.Type) RequestType {
	switch t.Kind() {
	case reflect.Bool:
		return RequestBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return RequestInteger
	case reflect.Float32, reflect.Float64:
		return RequestNumber
	case reflect.String:
		return RequestText
	case reflect.Slice, reflect.Array:
		return RequestList
	case reflect.Map, reflect.Struct:
		return RequestTable
	}
	return RequestAny
}
