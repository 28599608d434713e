//! The drivers that come with the program, as source: their files, and those from which one of one's own begins.

/// A driver that comes with the program.
#[derive(Debug)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// Its files, the manifest first.
    pub files: &'static [DriverFile],
    /// What one of one's own begins from.
    pub template: Template,
}

/// A file: where it lies below `drivers/`, and its text. In the directory of a driver it has the last part as its name.
pub type DriverFile = (&'static str, &'static str);

/// An endpoint over a pair of pipes, for others to change.
#[derive(Debug)]
pub struct Template {
    /// Its files, the one to change first.
    pub files: &'static [DriverFile],
    /// What builds it in its directory, if anything must.
    pub build: Option<&'static str>,
    /// The command that it is.
    pub run: &'static str,
    /// What it calls itself, as a string: one's own name comes in its place.
    pub program: &'static str,
}

impl Shipped {
    /// The text of its manifest.
    pub fn manifest_text(&self) -> &'static str {
        self.files[0].1
    }
}

/// The name of a file in the directory of its driver.
pub fn file_name((source, _): &DriverFile) -> &'static str {
    source.rsplit('/').next().unwrap_or(source)
}

macro_rules! sources {
    ($($source:literal)+) => {
        &[$(($source, include_str!(concat!("../../../drivers/", $source)))),+]
    };
}

/// A driver in Python: its own files, and the core of all.
macro_rules! in_python {
    ($name:literal: $($source:literal)+) => {
        Shipped {
            name: $name,
            files: sources![$($source)+ "python/endpoint.py" "python/codec.py" "python/message.capnp"],
            template: PYTHON,
        }
    };
}

/// A driver in Rust.
macro_rules! in_rust {
    ($name:literal: $($source:literal)+) => {
        Shipped { name: $name, files: sources![$($source)+ "rust/endpoint.rs"], template: RUST }
    };
}

const C: Template = Template {
    files: sources!["c/template.c" "c/endpoint.h"],
    build: Some("cc -O2 -o endpoint template.c"),
    run: "./endpoint",
    program: "NAME",
};
const CPP: Template = Template {
    files: sources!["cpp/template.cpp" "cpp/ipcmark_endpoint.hpp"],
    build: Some("c++ -std=c++17 -O2 -o endpoint template.cpp"),
    run: "./endpoint",
    program: "NAME",
};
const GO: Template = Template {
    files: sources!["go/template.go" "go/endpoint.go" "go/go.mod"],
    build: Some("go build -o endpoint template.go endpoint.go"),
    run: "./endpoint",
    program: "NAME",
};
const JAVA: Template = Template {
    files: sources!["java/Template.java" "java/Endpoint.java"],
    build: Some("javac Template.java Endpoint.java"),
    run: "java Template",
    program: "NAME",
};
const NODE: Template =
    Template { files: sources!["node/template.js"], build: None, run: "node template.js", program: "NAME" };
const PYTHON: Template = Template {
    files: sources!["python/template.py"],
    build: None,
    run: "python3 template.py",
    program: "NAME",
};
const RUST: Template = Template {
    files: sources![
        "rust/main.rs" "rust/codec.rs" "rust/datagrams.rs" "rust/endpoint.rs" "rust/Cargo.toml" "rust/Cargo.lock"
    ],
    build: Some("cargo build --release --locked"),
    run: "target/release/driver",
    program: "rust",
};

/// All of them: those of languages, then those of middleware.
pub const SHIPPED: &[Shipped] = &[
    Shipped {
        name: "c",
        files: sources!["c/driver.toml" "c/driver.c" "c/codec.h" "c/endpoint.h"],
        template: C,
    },
    Shipped {
        name: "cpp",
        files: sources!["cpp/driver.toml" "cpp/driver.cpp" "cpp/codec.hpp" "cpp/ipcmark_endpoint.hpp"],
        template: CPP,
    },
    Shipped {
        name: "go",
        files: sources![
            "go/driver.toml" "go/driver.go" "go/datagrams.go" "go/msgpack.go" "go/endpoint.go" "go/go.mod" "go/go.sum"
        ],
        template: GO,
    },
    Shipped {
        name: "java",
        files: sources![
            "java/driver.toml" "java/Driver.java" "java/CodedDriver.java" "java/Datagrams.java" "java/Endpoint.java" "java/pom.xml"
            "java/jars.sha256"
        ],
        template: JAVA,
    },
    Shipped {
        name: "node",
        files: sources![
            "node/driver.toml" "node/driver.js" "node/datagrams.js" "node/codec.js" "node/endpoint.js" "node/package.json"
            "node/package-lock.json"
        ],
        template: NODE,
    },
    in_python!("python": "python/driver.toml" "python/driver.py" "python/asyncio_endpoint.py"),
    in_rust!("rust": "rust/driver.toml" "rust/main.rs" "rust/codec.rs" "rust/datagrams.rs" "rust/Cargo.toml" "rust/Cargo.lock"),
    in_python!("uvloop": "uvloop/driver.toml" "uvloop/driver.py" "python/asyncio_endpoint.py"),
    Shipped {
        name: "aeron",
        files: sources![
            "aeron/driver.toml" "aeron/Driver.java" "java/Endpoint.java" "aeron/pom.xml" "aeron/jars.sha256"
        ],
        template: JAVA,
    },
    Shipped {
        name: "boost",
        files: sources!["boost/driver.toml" "boost/driver.cpp" "cpp/ipcmark_endpoint.hpp"],
        template: CPP,
    },
    in_python!("capnp": "capnp/driver.toml" "capnp/driver.py" "capnp/endpoint.capnp" "python/asyncio_endpoint.py"),
    in_python!("dbus": "dbus/driver.toml" "dbus/driver.py"),
    in_python!("grpc": "grpc/driver.toml" "grpc/driver.py"),
    in_rust!("iceoryx2": "iceoryx2/driver.toml" "iceoryx2/main.rs" "iceoryx2/cleaner.rs" "iceoryx2/Cargo.toml" "iceoryx2/Cargo.lock"),
    Shipped {
        name: "mpi",
        files: sources!["mpi/driver.toml" "mpi/driver.cpp" "cpp/ipcmark_endpoint.hpp"],
        template: CPP,
    },
    in_rust!("nats": "nats/driver.toml" "nats/main.rs" "nats/broker.rs" "nats/Cargo.toml" "nats/Cargo.lock"),
    in_python!("nng": "nng/driver.toml" "nng/driver.py"),
    in_python!("redis": "redis/driver.toml" "redis/driver.py"),
    in_rust!("tonic": "tonic/driver.toml" "tonic/main.rs" "tonic/build.rs" "tonic/Cargo.toml" "tonic/Cargo.lock"),
    in_rust!("zenoh": "zenoh/driver.toml" "zenoh/main.rs" "zenoh/Cargo.toml" "zenoh/Cargo.lock"),
    in_python!("zeromq": "zeromq/driver.toml" "zeromq/driver.py"),
];
