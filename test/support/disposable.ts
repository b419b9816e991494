/** Settings of a server whose data may be lost. The service refuses `fsync=off` unless it is accepted in the same place. */
export const disposable = { fsync: 'off', 'intake.accepted_settings': 'fsync=off' };
