type Members = Readonly<Record<string, unknown>>;

/** The members that have a value. */
export function setMembers(members: Members): Members {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined && value !== null && value !== ''),
  );
}

/** The same; `undefined` if none has. */
export function setMembersIfAny(members: Members | undefined): Members | undefined {
  const set = setMembers(members ?? {});
  return Object.keys(set).length === 0 ? undefined : set;
}

/** A list that is not empty. */
export function listIfAny<T>(list: readonly T[] | undefined): readonly T[] | undefined {
  return list !== undefined && list.length > 0 ? list : undefined;
}
