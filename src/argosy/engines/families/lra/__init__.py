"""Long-running applications beside tasks: the two schedulers that Medea and its baselines are made of.

    manager    the constraint manager: what is active, validated on submission
    cluster    node groups and static tags, read off a view
    memory     running containers and active constraints, as the cell says
    sight      which constraints a baseline can see
    plans      a batch of LRAs: the question, the decision, and the claims
    tasks      a task job with constraints
    queues     whose task job comes next
    scheduler  the loop: LRAs collected per interval, tasks by queues, one allocator
    program    engines that solve the integer program
    reasons    explanations

This package is no engine; it is what several are made of.
"""
