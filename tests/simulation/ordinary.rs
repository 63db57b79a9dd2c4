//! What happens when nothing goes wrong.

use crate::support::{CLASS, comes_to_rest, secs, world};
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, VOLUMES};

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_gets_a_volume_and_its_end_deletes_it() {
    let world = world(&[]);
    let _sidecar = world.start();
    world.add_claim("data", CLASS);
    assert!(world.until(secs(5), |world| world.is_bound("data")).await, "{}", world.trace.text());
    assert_eq!(world.volumes_in_backend(), 1);
    comes_to_rest(&world).await;
    world.remove(CLAIMS, "data");
    assert!(world.until(secs(5), |world| world.all(VOLUMES).is_empty()).await, "{}", world.trace.text());
    assert_eq!(world.volumes_in_backend(), 0);
    comes_to_rest(&world).await;
    assert_eq!(world.requests_of("delete", VOLUMES, Some(404)), 0);
}
