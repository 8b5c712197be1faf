// WebSocket frames (RFC 6455). Node includes a WebSocket client since version 22 only, without support for unix sockets.
import { createHash, randomBytes } from "node:crypto";

import { ProtocolError } from "./errors.js";

export const opcodes = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const maxMessage = 16 << 20;

export function newSocketKey(): string {
  return randomBytes(16).toString("base64");
}

export function acceptKey(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

/** A client frame, which is always masked. */
export function makeFrame(opcode: number, payload: Uint8Array): Buffer {
  const size = payload.length;
  const extra = size < 126 ? 0 : size < 1 << 16 ? 2 : 8;
  const frame = Buffer.alloc(2 + extra + 4 + size);
  frame[0] = 0x80 | opcode;
  frame[1] = 0x80 | (extra === 0 ? size : extra === 2 ? 126 : 127);
  if (extra === 2) frame.writeUInt16BE(size, 2);
  if (extra === 8) frame.writeBigUInt64BE(BigInt(size), 2);
  const mask = randomBytes(4);
  mask.copy(frame, 2 + extra);
  for (let i = 0; i < size; ++i) frame[6 + extra + i] = (payload[i] ?? 0) ^ (mask[i % 4] ?? 0);
  return frame;
}

export interface Message {
  opcode: number;
  payload: Buffer;
}

/** Splits a stream of bytes into complete messages of a server. */
export class FrameParser {
  private rest: Buffer = Buffer.alloc(0);
  private partial: Buffer = Buffer.alloc(0);
  private opcode = 0;

  feed(bytes: Uint8Array): Message[] {
    this.rest = Buffer.concat([this.rest, bytes]);
    const messages: Message[] = [];
    for (let frame = this.takeFrame(); frame !== undefined; frame = this.takeFrame()) {
      const { final, opcode, payload } = frame;
      if (opcode >= opcodes.close) {
        messages.push({ opcode, payload });
        continue;
      }
      if (opcode !== 0) {
        this.opcode = opcode;
        this.partial = Buffer.alloc(0);
      }
      this.partial = Buffer.concat([this.partial, payload]);
      if (this.partial.length > maxMessage) throw new ProtocolError("a WebSocket message is too large");
      if (final) messages.push({ opcode: this.opcode, payload: this.partial });
    }
    return messages;
  }

  private takeFrame(): { final: boolean; opcode: number; payload: Buffer } | undefined {
    const rest = this.rest;
    if (rest.length < 2) return undefined;
    const first = rest.readUInt8(0);
    const second = rest.readUInt8(1);
    if ((second & 0x80) !== 0 || (first & 0x70) !== 0) throw new ProtocolError("malformed WebSocket frame");
    let size = second & 0x7f;
    const begin = size < 126 ? 2 : size === 126 ? 4 : 10;
    if (rest.length < begin) return undefined;
    if (size === 126) size = rest.readUInt16BE(2);
    else if (size === 127) size = Number(rest.readBigUInt64BE(2));
    if (size > maxMessage) throw new ProtocolError("a WebSocket frame is too large");
    if (rest.length < begin + size) return undefined;
    this.rest = rest.subarray(begin + size);
    return { final: (first & 0x80) !== 0, opcode: first & 0x0f, payload: rest.subarray(begin, begin + size) };
  }
}
