"""requestState: claims in, an opaque token out, and back. Only the gateway can read one. It knows no HTTP."""
