//! Generates the client and the server of the service, as protoc would have them, without protoc: its message is in
//! main.rs.

use tonic_build::manual::{Builder, Method, Service};

fn main() {
    let method = |name: &str, route: &str| {
        let method = Method::builder().name(name).route_name(route);
        method
            .input_type("crate::Payload")
            .output_type("crate::Payload")
            .codec_path("tonic_prost::ProstCodec")
    };
    let service = Service::builder()
        .name("Exchange")
        .package("ipcmark")
        .method(method("ask", "Ask").build())
        .method(method("converse", "Converse").client_streaming().server_streaming().build())
        .build();
    Builder::new().compile(&[service]);
}
