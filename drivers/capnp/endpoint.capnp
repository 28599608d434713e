# What the endpoints of a trial call: the server answers a message with a message.

@0xb6f0d6d3c1a94e27;

interface Endpoint {
  exchange @0 (message :Data) -> (answer :Data);
}
