;; Two agents in each environment, with rows of their own in every tensor: those of an environment follow each other.
;; include agents
(global $acts i32 (i32.const -1))
