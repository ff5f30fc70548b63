"""An attacker who has read the source: variants of attacks on the policy, generated, with a model that obeys them."""
