;; An agent may say that it does not act: the second of each environment never does, and its action is not read.
;; include agents
(global $acts i32 (i32.const 0))
(data (i32.const 0x420) "\07")
