# The object that the codec capnp makes bytes of.
@0xd1b5c9a04e27f836;

struct Message {
  kind @0 :Text;
  data @1 :Data;
}
