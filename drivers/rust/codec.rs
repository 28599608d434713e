//! Codecs: what makes bytes of an object, and the object of them again. The object is a word, `kind`, and bytes, `data`;
//! in JSON, which has no bytes, those are base64.

use crate::endpoint::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

const KIND: &str = "message";

pub const NAMES: &[&str] = &["json", "msgpack", "protobuf"];

pub enum Codec {
    Json,
    Msgpack,
    Protobuf,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
struct Object {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "to_data", deserialize_with = "from_data")]
    data: Vec<u8>,
}

fn to_data<S: Serializer>(data: &[u8], to: S) -> std::result::Result<S::Ok, S::Error> {
    if to.is_human_readable() { to.serialize_str(&STANDARD.encode(data)) } else { to.serialize_bytes(data) }
}

fn from_data<'a, D: Deserializer<'a>>(from: D) -> std::result::Result<Vec<u8>, D::Error> {
    if from.is_human_readable() {
        STANDARD.decode(<&str>::deserialize(from)?).map_err(D::Error::custom)
    } else {
        serde_bytes::deserialize(from)
    }
}

impl Codec {
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "json" => Ok(Self::Json),
            "msgpack" => Ok(Self::Msgpack),
            "protobuf" => Ok(Self::Protobuf),
            _ => Err(format!("this driver has no codec {name}").into()),
        }
    }

    /// Appends to `bytes` those of the object with `data`.
    pub fn encode(&self, data: Vec<u8>, bytes: &mut Vec<u8>) -> Result<()> {
        let object = Object { kind: KIND.to_owned(), data };
        match self {
            Self::Json => serde_json::to_writer(bytes, &object)?,
            Self::Msgpack => rmp_serde::encode::write_named(bytes, &object)?,
            Self::Protobuf => object.encode(bytes)?,
        }
        Ok(())
    }

    /// The data of the object of which `bytes` were made.
    pub fn decode(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let object: Object = match self {
            Self::Json => serde_json::from_slice(bytes)?,
            Self::Msgpack => rmp_serde::from_slice(bytes)?,
            Self::Protobuf => Object::decode(bytes)?,
        };
        Ok(object.data)
    }
}
