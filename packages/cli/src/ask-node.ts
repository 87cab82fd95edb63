import { checkOnChain } from '@tollbase/server/anchors/anchor-event'
import { Fault } from '@tollbase/server/base/fault'
import { realWorld } from '@tollbase/server/base/world'
import { openRpc } from '@tollbase/server/x402/rpc'
import { parseAnchorTransaction } from '@tollbase/verify/anchor'
import type { AnchorProof } from '@tollbase/verify/anchor-proof'

/** Asks the node whether its chain has the anchor of a proof that holds; `ok` is undefined where it does not answer. */
export async function askNode(
  url: string,
  proof: AnchorProof,
): Promise<{ readonly ok: boolean | undefined; readonly detail: string }> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return { ok: undefined, detail: 'it is not a URL of http or https' }
  const rpc = openRpc({ url, world: realWorld })
  try {
    return await checkOnChain(rpc, proof, parseAnchorTransaction(proof.raw))
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { ok: undefined, detail: error.internal ?? error.message }
  } finally {
    rpc.close()
  }
}
