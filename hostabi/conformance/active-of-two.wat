;; A host refuses an active that is neither 0 nor 1.
;; include agents
(global $acts i32 (i32.const 2))
(data (i32.const 0x420) "\07")
