"""Long-running applications (LRAs) beside tasks: the two schedulers of Medea and its baselines.

    manager    the constraint manager: what is active, validated on submission
    overrides  an application's constraints that contradict the operator's
    cluster    node groups and static tags, read off a view
    memory     running containers and active constraints, read from the cell
    sight      which constraints a baseline supports
    plans      a batch of LRAs: the question, the decision, and the claims
    tasks      a task job with constraints
    queues     what queues hold, and whose job comes next
    queue_scheduler  the task scheduler
    scheduler  both: LRAs collected per interval, tasks by queues, one allocator
    program    engines that solve the integer program
    reasons    explanations

Shared by `medea`, `jkube`, `jkube++`, `kube-modern`, `yarn` and `ilp-all`. Contains no engine.
"""
