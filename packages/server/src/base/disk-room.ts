/** Promises room for so many more bytes, in place of what was promised before; throws where they do not fit on the disk. */
export type NeedRoom = (bytes: number) => void

/** Runs work that writes to a disk; what it was promised last counts as taken until it ends. */
export type UseRoom = <T>(work: (needRoom: NeedRoom) => Promise<T>) => Promise<T>
