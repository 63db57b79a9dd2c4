// Prints the descriptor of the official CSI Go package as canonical JSON: every name, number, type, label, oneof,
// enum value, reserved range and option, sorted by name. tests/descriptor.rs compares proto/csi.proto with it.
//
//	e2e/tools/bin/dump-descriptor > tests/data/csi-1.13.0.json
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// object is written with sorted keys, which makes the output canonical.
type object = map[string]any

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	if err := out.Encode(file(protodesc.ToFileDescriptorProto(csi.File_csi_proto))); err != nil {
		fmt.Fprintln(os.Stderr, "dump-descriptor:", err)
		os.Exit(1)
	}
}

func file(f *descriptorpb.FileDescriptorProto) object {
	messages, enums, services, extensions := object{}, object{}, object{}, object{}
	for _, m := range f.GetMessageType() {
		message(m, f.GetPackage(), messages, enums)
	}
	for _, e := range f.GetEnumType() {
		enum(e, f.GetPackage(), enums)
	}
	for _, s := range f.GetService() {
		services[s.GetName()] = service(s)
	}
	for _, x := range f.GetExtension() {
		shape := field(x)
		shape["extends"] = x.GetExtendee()
		extensions[x.GetName()] = shape
	}
	return object{
		"package": f.GetPackage(), "syntax": f.GetSyntax(), "imports": f.GetDependency(),
		"messages": messages, "enums": enums, "services": services, "extensions": extensions,
	}
}

// message adds m and everything nested in it, under full names.
func message(m *descriptorpb.DescriptorProto, scope string, messages, enums object) {
	name := scope + "." + m.GetName()
	fields := object{}
	for _, f := range m.GetField() {
		shape := field(f)
		if f.OneofIndex != nil {
			shape["oneof"] = m.GetOneofDecl()[f.GetOneofIndex()].GetName()
		}
		fields[f.GetName()] = shape
	}
	oneofs := []string{}
	for _, o := range m.GetOneofDecl() {
		oneofs = append(oneofs, o.GetName())
	}
	reserved := [][2]int32{} // inclusive, as written in the source
	for _, r := range m.GetReservedRange() {
		reserved = append(reserved, [2]int32{r.GetStart(), r.GetEnd() - 1})
	}
	messages[name] = object{
		"fields": fields, "oneofs": oneofs, "options": options(m.GetOptions()),
		"reserved": reserved, "reserved_names": append([]string{}, m.GetReservedName()...),
	}
	for _, nested := range m.GetNestedType() {
		message(nested, name, messages, enums)
	}
	for _, e := range m.GetEnumType() {
		enum(e, name, enums)
	}
}

func field(f *descriptorpb.FieldDescriptorProto) object {
	return object{
		"number": f.GetNumber(), "label": f.GetLabel().String(), "type": f.GetType().String(),
		"type_name": f.GetTypeName(), "json_name": f.GetJsonName(), "options": options(f.GetOptions()),
	}
}

func enum(e *descriptorpb.EnumDescriptorProto, scope string, enums object) {
	values := object{}
	for _, v := range e.GetValue() {
		values[v.GetName()] = object{"number": v.GetNumber(), "options": options(v.GetOptions())}
	}
	reserved := [][2]int32{} // enum ranges are inclusive already
	for _, r := range e.GetReservedRange() {
		reserved = append(reserved, [2]int32{r.GetStart(), r.GetEnd()})
	}
	enums[scope+"."+e.GetName()] = object{
		"values": values, "options": options(e.GetOptions()),
		"reserved": reserved, "reserved_names": append([]string{}, e.GetReservedName()...),
	}
}

func service(s *descriptorpb.ServiceDescriptorProto) object {
	methods := object{}
	for _, m := range s.GetMethod() {
		methods[m.GetName()] = object{
			"input": m.GetInputType(), "output": m.GetOutputType(), "options": options(m.GetOptions()),
			"client_streaming": m.GetClientStreaming(), "server_streaming": m.GetServerStreaming(),
		}
	}
	return object{"methods": methods, "options": options(s.GetOptions())}
}

// options gives the options that are set, extensions by their full name.
func options(o proto.Message) object {
	set := object{}
	o.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		set[string(f.FullName())] = v.Interface()
		return true
	})
	return set
}
