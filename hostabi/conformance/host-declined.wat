;; A guest that does not want this host says so by a status.
;; include guest

(func (export "rl_host") (param $host i32) (param $len i32) (result i32) (i32.const -4))
