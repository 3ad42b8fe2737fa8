;; An action outside its space is refused, and no environment has moved: the host names the environment and the action, and continues with another.
;; include guest
(func (export "rl_current_env") (result i32) (i32.load (i32.const 0x2f08)))
