package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// defaultBytes is the size of a volume nobody gave a size.
const defaultBytes = 1 << 30

// driver answers the CSI calls. No handler looks at its context: like many real drivers, it finishes what it began.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	options
	volumes *store
}

// topologyKey is the one key of the driver's segments.
func (d *driver) topologyKey() string { return "topology." + d.name + "/node" }

// GetPluginInfo names the driver.
func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: d.version}, nil
}

// Probe is always ready.
func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// GetPluginCapabilities tells about the controller service and topology.
func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	services := []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	if d.topology {
		services = append(services, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}
	reply := &csi.GetPluginCapabilitiesResponse{}
	for _, service := range services {
		reply.Capabilities = append(reply.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: service}}})
	}
	return reply, nil
}

// ControllerGetCapabilities follows the flags.
func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	reply := &csi.ControllerGetCapabilitiesResponse{}
	add := func(asked bool, kinds ...csi.ControllerServiceCapability_RPC_Type) {
		for _, kind := range kinds {
			if asked {
				reply.Capabilities = append(reply.Capabilities, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kind}}})
			}
		}
	}
	add(true, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME)
	add(d.clone, csi.ControllerServiceCapability_RPC_CLONE_VOLUME)
	add(d.snapshots, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
	add(d.capacity, csi.ControllerServiceCapability_RPC_GET_CAPACITY)
	add(d.publish, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME)
	add(d.modify, csi.ControllerServiceCapability_RPC_MODIFY_VOLUME)
	add(d.multiWriter, csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
	return reply, nil
}

// CreateVolume makes a volume, or finds the one it made for the same name.
func (d *driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.Name == "" || len(r.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "name or capabilities missing")
	}
	wanted := volume{Name: r.Name, Bytes: r.CapacityRange.GetRequiredBytes(), Parameters: r.Parameters, Mutable: r.MutableParameters}
	if wanted.Bytes == 0 {
		wanted.Bytes = defaultBytes
		if limit := r.CapacityRange.GetLimitBytes(); limit > 0 {
			wanted.Bytes = min(wanted.Bytes, limit)
		}
	}
	if limit := r.CapacityRange.GetLimitBytes(); limit > 0 && wanted.Bytes > limit {
		return nil, status.Error(codes.OutOfRange, "required size is above the limit")
	}
	var err error
	if wanted.Source, err = d.sourceOf(r.VolumeContentSource); err != nil {
		return nil, err
	}
	if d.topology {
		if wanted.Node = d.place(r.AccessibilityRequirements); wanted.Node == "" {
			return nil, status.Error(codes.InvalidArgument, "no segment with key "+d.topologyKey())
		}
	}
	time.Sleep(d.delay)
	found, made, err := d.volumes.create(wanted)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if !made && (found.Snapshot || found.Bytes != wanted.Bytes || found.Source != wanted.Source || !maps.Equal(found.Parameters, wanted.Parameters)) {
		return nil, status.Error(codes.AlreadyExists, "volume "+r.Name+" exists with other properties")
	}
	reply := &csi.Volume{VolumeId: found.ID, CapacityBytes: found.Bytes, ContentSource: r.VolumeContentSource}
	if found.Node != "" {
		reply.AccessibleTopology = []*csi.Topology{{Segments: map[string]string{d.topologyKey(): found.Node}}}
	}
	return &csi.CreateVolumeResponse{Volume: reply}, nil
}

// sourceOf checks a content source. A snapshot is taken on trust, since its own driver side may be elsewhere.
func (d *driver) sourceOf(source *csi.VolumeContentSource) (string, error) {
	switch kind := source.GetType().(type) {
	case nil:
		return "", nil
	case *csi.VolumeContentSource_Snapshot:
		if !d.snapshots {
			return "", status.Error(codes.InvalidArgument, "no snapshots here")
		}
		return "snapshot/" + kind.Snapshot.GetSnapshotId(), nil
	case *csi.VolumeContentSource_Volume:
		if !d.clone {
			return "", status.Error(codes.InvalidArgument, "no clones here")
		}
		id := kind.Volume.GetVolumeId()
		if _, ok := d.volumes.get(id); !ok {
			return "", status.Error(codes.NotFound, "no source volume "+id)
		}
		return "volume/" + id, nil
	}
	return "", status.Error(codes.InvalidArgument, "unknown kind of content source")
}

// place picks the first preferred, else the first requisite node, else the driver's own.
func (d *driver) place(wanted *csi.TopologyRequirement) string {
	for _, segment := range slices.Concat(wanted.GetPreferred(), wanted.GetRequisite()) {
		if node := segment.GetSegments()[d.topologyKey()]; node != "" {
			return node
		}
	}
	if wanted == nil {
		return d.node
	}
	return ""
}

// DeleteVolume forgets a volume; one that never was is as good as deleted.
func (d *driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if r.VolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID missing")
	}
	time.Sleep(d.delay)
	if v, ok := d.volumes.get(r.VolumeId); ok && len(v.Published) > 0 {
		return nil, status.Error(codes.FailedPrecondition, "attached to "+strings.Join(v.Published, ", "))
	}
	if err := d.volumes.remove(r.VolumeId); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// GetCapacity is the flag's value minus what volumes of the segment take.
func (d *driver) GetCapacity(_ context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if !d.capacity {
		return nil, status.Error(codes.Unimplemented, "no capacity here")
	}
	node := r.AccessibleTopology.GetSegments()[d.topologyKey()]
	reply := &csi.GetCapacityResponse{AvailableCapacity: max(0, d.capacityBytes-d.volumes.usedBytes(node))}
	if d.maximumVolumeSize > 0 {
		reply.MaximumVolumeSize = wrapperspb.Int64(d.maximumVolumeSize)
	}
	return reply, nil
}

// ControllerPublishVolume remembers the node.
func (d *driver) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	found, err := d.volumes.change(r.VolumeId, func(v *volume) {
		if !slices.Contains(v.Published, r.NodeId) {
			v.Published = append(slices.Clone(v.Published), r.NodeId)
		}
	})
	return &csi.ControllerPublishVolumeResponse{}, orMissing(d.publish, found, err)
}

// ControllerUnpublishVolume forgets the node, or all of them.
func (d *driver) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	_, err := d.volumes.change(r.VolumeId, func(v *volume) {
		v.Published = slices.DeleteFunc(slices.Clone(v.Published), func(node string) bool { return r.NodeId == "" || node == r.NodeId })
	})
	return &csi.ControllerUnpublishVolumeResponse{}, orMissing(d.publish, true, err)
}

// ControllerModifyVolume replaces single mutable parameters.
func (d *driver) ControllerModifyVolume(_ context.Context, r *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	found, err := d.volumes.change(r.VolumeId, func(v *volume) {
		merged := map[string]string{}
		maps.Copy(merged, v.Mutable)
		maps.Copy(merged, r.MutableParameters)
		v.Mutable = merged
	})
	return &csi.ControllerModifyVolumeResponse{}, orMissing(d.modify, found, err)
}

// ValidateVolumeCapabilities confirms everything about a volume that exists.
func (d *driver) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	_, found := d.volumes.get(r.VolumeId)
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.VolumeCapabilities}}, orMissing(true, found, nil)
}

// CreateSnapshot is idempotent by name, like CreateVolume.
func (d *driver) CreateSnapshot(_ context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	source, ok := d.volumes.get(r.SourceVolumeId)
	if err := orMissing(d.snapshots, ok, nil); err != nil {
		return nil, err
	}
	found, _, err := d.volumes.create(volume{Name: r.Name, Source: source.ID, Snapshot: true})
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if found.Source != source.ID {
		return nil, status.Error(codes.AlreadyExists, "snapshot "+r.Name+" has another source")
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{SnapshotId: found.ID, SourceVolumeId: source.ID, SizeBytes: source.Bytes, CreationTime: timestamppb.Now(), ReadyToUse: true}}, nil
}

// DeleteSnapshot forgets a snapshot.
func (d *driver) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	return &csi.DeleteSnapshotResponse{}, orMissing(d.snapshots, true, d.volumes.remove(r.SnapshotId))
}

// NodeGetInfo tells the node and its segment.
func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	reply := &csi.NodeGetInfoResponse{NodeId: d.node}
	if d.topology {
		reply.AccessibleTopology = &csi.Topology{Segments: map[string]string{d.topologyKey(): d.node}}
	}
	return reply, nil
}

// NodeGetCapabilities has none.
func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// orMissing is the error of a call that may be switched off, about a volume that may be unknown.
func orMissing(offered, found bool, err error) error {
	switch {
	case !offered:
		return status.Error(codes.Unimplemented, "switched off")
	case err != nil:
		return status.Error(codes.Internal, err.Error())
	case !found:
		return status.Error(codes.NotFound, "no such volume")
	}
	return nil
}
