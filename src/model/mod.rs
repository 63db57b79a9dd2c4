//! The words that all rooms share: slim read types of API objects, what a driver can do, what is asked of it
//! and what it answers. Nothing here does I/O.
//!
//! Read types declare only the fields that some rule reads, so everything else is skipped while parsing. They
//! are **never** sent back: an object that has to change is read as a JSON value, changed and written.

pub mod accessibility;
pub mod attachment;
pub mod claim;
pub mod class;
pub mod driver;
pub mod finalizers;
pub mod grant;
pub mod meta;
pub mod node;
pub mod options;
pub mod quantity;
pub mod request;
pub mod secret;
pub mod snapshot;
pub mod turn;
pub mod volume;

pub use accessibility::Accessibility;
pub use attachment::Attachment;
pub use claim::Claim;
pub use class::Class;
pub use driver::Driver;
pub use options::Options;
pub use request::{CallError, CreateRequest, CreatedVolume, Segments};
pub use secret::Secrets;
pub use turn::Turn;
pub use volume::Volume;
