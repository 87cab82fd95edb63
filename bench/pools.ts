/** Starts the peer with each pool size, and gives the size with which it is fastest (the second run counts). */
export async function findBestPool(
  poolSizes: readonly number[],
  peerWith: (
    poolSize: number,
  ) => Promise<{ readonly run: () => Promise<number>; readonly stop: () => Promise<void> }>,
): Promise<number> {
  let best = { poolSize: 1, perSecond: 0 }
  for (const poolSize of poolSizes) {
    const peer = await peerWith(poolSize)
    await peer.run()
    const perSecond = await peer.run()
    await peer.stop()
    if (perSecond > best.perSecond) best = { poolSize, perSecond }
  }
  return best.poolSize
}
