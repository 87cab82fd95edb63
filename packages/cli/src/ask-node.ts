import { checkOnChain } from '@tollbase/server/anchors/anchor-event'
import { Fault } from '@tollbase/server/base/fault'
import { realWorld } from '@tollbase/server/base/world'
import { openCelestiaNode } from '@tollbase/server/celestia/node'
import { NodeError } from '@tollbase/server/celestia/node-errors'
import { TransportError } from '@tollbase/server/x402/http-json'
import { openRpc } from '@tollbase/server/x402/rpc'
import { parseAnchorTransaction } from '@tollbase/verify/anchor'
import {
  type AnchorProof,
  type CelestiaAnchorProof,
  type EvmAnchorProof,
  isCelestiaProof,
} from '@tollbase/verify/anchor-proof'

/** The answer of a node; `ok` is undefined where it gave none. */
export type NodeAnswer = { readonly ok: boolean | undefined; readonly detail: string }

/** A node to ask, and the token that it asks for. */
export type NodeToAsk = { readonly url: string; readonly token?: string | undefined }

/** Asks the node whether its chain has the anchor of a proof that holds. */
export async function askNode(node: NodeToAsk, proof: AnchorProof): Promise<NodeAnswer> {
  const { url } = node
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return { ok: undefined, detail: 'it is not a URL of http or https' }
  return isCelestiaProof(proof) ? askCelestia(node, proof) : askEvm(url, proof)
}

async function askEvm(url: string, proof: EvmAnchorProof): Promise<NodeAnswer> {
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

/** The proof leads to the header, so its hash is all that the node has to tell. */
async function askCelestia(
  { url, token }: NodeToAsk,
  { block_number: height, block_hash, header, network }: CelestiaAnchorProof,
): Promise<NodeAnswer> {
  const node = openCelestiaNode({ url, token, world: realWorld })
  try {
    const block = await node.readBlock(height)
    if (block.header.chain_id !== header.chain_id)
      return {
        ok: false,
        detail: `the node serves chain ${block.header.chain_id}, and the anchor is on ${network}`,
      }
    if (block.hash !== block_hash)
      return { ok: false, detail: `block ${height} has the hash ${block.hash}, not ${block_hash}` }
    return { ok: true, detail: `block ${height} of ${network} has the hash ${block_hash}` }
  } catch (error) {
    if (!(error instanceof NodeError || error instanceof TransportError)) throw error
    return { ok: undefined, detail: error.message }
  } finally {
    node.close()
  }
}
