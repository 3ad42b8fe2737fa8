;; Active has a row for each agent: that of an environment is refused.
;; include agents
(global $acts i32 (i32.const 1))
(data (i32.const 0x420) "\07")
(data (i32.const 0x808) "\04")
