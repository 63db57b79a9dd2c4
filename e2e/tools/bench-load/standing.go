package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// neverAnswered leaves every creation open: the driver says that it may still go on.
const neverAnswered = `[{"method": "CreateVolume", "code": "Aborted", "message": "the backend is still busy with this volume"}]`

const (
	attachmentsPath = "/apis/storage.k8s.io/v1/volumeattachments"
	volumeFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
)

// standing are bound claims and volumes that somebody made earlier.
type standing struct {
	namespace, driver, class, reclaim string
	finalizers                        []string
}

// makeForeign makes bound claims and volumes of another driver.
func (b *bench) makeForeign() error {
	if b.preload == 0 {
		return nil
	}
	b.foreign = "foreign-" + b.stamp
	if err := b.makeNamespace(b.foreign); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	claims, err := b.api.track(ctx, claimsPath(b.foreign), func(slim) bool { return true })
	if err != nil {
		return err
	}
	foreign := standing{namespace: b.foreign, driver: "other.csi.test", class: "other", reclaim: "Retain"}
	return b.makeBound(foreign, b.preload, claims)
}

// makeOwned makes the volumes of our driver that a scenario wants, and attaches them.
func (b *bench) makeOwned(namespace string, s scenario, claims *tracker) error {
	if s.owned == 0 {
		return nil
	}
	owned := standing{namespace: namespace, driver: driverName, class: "bench", reclaim: "Delete", finalizers: []string{volumeFinalizer}}
	if err := b.makeBound(owned, s.owned, claims); err != nil || !s.attached {
		return err
	}
	return each(s.owned, func(i int) error {
		name := fmt.Sprintf("%s-%d", namespace, i)
		spec := object{"attacher": driverName, "nodeName": fmt.Sprintf("node-%d", i%100), "source": object{"persistentVolumeName": name}}
		attachment := object{"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": object{"name": name}, "spec": spec}
		return b.api.call(http.MethodPost, attachmentsPath, attachment, nil)
	})
}

// detach removes what makeOwned attached.
func (b *bench) detach(namespace string, s scenario) {
	if s.attached {
		_ = each(s.owned, func(i int) error {
			return b.api.call(http.MethodDelete, fmt.Sprintf("%s/%s-%d", attachmentsPath, namespace, i), nil, nil)
		})
	}
}

// makeBound makes claims and volumes and waits until the binder agrees that they are bound.
func (b *bench) makeBound(what standing, count int, claims *tracker) error {
	if err := each(count, func(i int) error { return b.makeBoundPair(what, i) }); err != nil {
		return err
	}
	for end := time.Now().Add(b.timeout); claims.count("Bound") < count; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("only %d of %d claims in %s were bound", claims.count("Bound"), count, what.namespace)
		}
	}
	return nil
}

// makeBoundPair makes one claim and its volume and does the binder's work on them: it takes one pair at a time,
// which makes thousands of them a matter of many minutes on a busy machine.
func (b *bench) makeBoundPair(what standing, i int) error {
	name, volume := fmt.Sprintf("c%d", i), fmt.Sprintf("%s-%d", what.namespace, i)
	modes, capacity := []string{"ReadWriteOnce"}, object{"storage": "1Gi"}
	var made struct{ Metadata struct{ UID string } }
	if err := b.api.call(http.MethodPost, claimsPath(what.namespace), claim(i, what.class, volume), &made); err != nil {
		return err
	}
	spec := object{"storageClassName": what.class, "capacity": capacity, "accessModes": modes, "persistentVolumeReclaimPolicy": what.reclaim,
		"csi":      object{"driver": what.driver, "volumeHandle": fmt.Sprintf("h%d", i), "volumeAttributes": object{"k": strings.Repeat("v", 60)}},
		"claimRef": object{"namespace": what.namespace, "name": name, "uid": made.Metadata.UID}}
	metadata := object{"name": volume, "finalizers": what.finalizers, "annotations": object{"pv.kubernetes.io/provisioned-by": what.driver}}
	for _, step := range []struct {
		method, path string
		body         object
	}{
		{http.MethodPost, volumesPath, object{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}},
		{http.MethodPatch, volumesPath + "/" + volume + "/status", object{"status": object{"phase": "Bound"}}},
		{http.MethodPatch, claimsPath(what.namespace) + "/" + name, object{"metadata": object{"annotations": object{"pv.kubernetes.io/bind-completed": "yes"}}}},
		{http.MethodPatch, claimsPath(what.namespace) + "/" + name + "/status", object{"status": object{"phase": "Bound", "accessModes": modes, "capacity": capacity}}},
	} {
		if err := b.api.call(step.method, step.path, step.body, nil); err != nil {
			return err
		}
	}
	return nil
}
