# build_software.sh FOLDER
# Build what the publisher adds to the image, in a virtual environment over the Python of the image.
# Set by the job: TORCH (requirements), TORCH_BACKEND, TORCH_CUDA_ARCH_LIST, DEEPEP_COMMIT, and if the GPU type needs them
# TORCHAO_COMMIT, NVSHMEM, CCCL and RDMA_CORE (versions), HYBRID_EP_MULTINODE.
set -eux
folder=$1
unset PIP_CONSTRAINT UV_CONSTRAINT # the versions of the image
rm -rf "$folder"
python3 -m venv --system-site-packages "$folder"
python=$folder/bin/python build=$folder/build
mkdir "$build"

checkout() { # checkout NAME URL COMMIT
  git clone "$2" "$build/$1"
  git -C "$build/$1" checkout "$3"
}
add_headers() { # those of the RDMA libraries, which the image may have already
  [ -e /usr/include/infiniband/verbs.h ] && return
  apt-get update
  apt-get install -y --no-install-recommends libibverbs-dev libibverbs1 librdmacm-dev librdmacm1 rdma-core "$@"
}

"$python" -m pip install uv
"$python" -m uv pip install --python "$python" --no-deps --torch-backend "$TORCH_BACKEND" $TORCH # several words
add_headers
if [ -n "${NVSHMEM-}" ]; then # for DeepEP
  "$python" -m pip install "nvidia-nvshmem-cu13==$NVSHMEM"
  NVSHMEM_DIR=$("$python" -c 'import nvidia.nvshmem as found; print(next(iter(found.__path__)))')
  export NVSHMEM_DIR
  ln -sf "$(basename "$(ls "$NVSHMEM_DIR"/lib/libnvshmem_host.so.* | head -n 1)")" "$NVSHMEM_DIR/lib/libnvshmem_host.so"
fi
if [ -n "${CCCL-}" ] && [ ! -e /usr/local/cuda/include/cuda/std/tuple ]; then
  checkout cccl https://github.com/NVIDIA/cccl.git "$CCCL"
  export CPLUS_INCLUDE_PATH=$build/cccl/libcudacxx/include${CPLUS_INCLUDE_PATH:+:$CPLUS_INCLUDE_PATH}
fi
if [ -n "${RDMA_CORE-}" ]; then # for HybridEP between nodes
  apt-get update
  apt-get install -y --no-install-recommends \
    build-essential cmake ninja-build libudev-dev libnl-3-dev libnl-route-3-dev pkg-config
  checkout rdma-core https://github.com/linux-rdma/rdma-core.git "$RDMA_CORE"
  (cd "$build/rdma-core" && bash build.sh)
  export RDMA_CORE_HOME=$build/rdma-core/build
  ln -sf /usr/local/cuda/lib64/stubs/libnvidia-ml.so "$RDMA_CORE_HOME/lib/libnvidia-ml.so.1" # there is no driver here
  export LIBRARY_PATH=$RDMA_CORE_HOME/lib:${LIBRARY_PATH-} LD_LIBRARY_PATH=$RDMA_CORE_HOME/lib:${LD_LIBRARY_PATH-}
fi
checkout DeepEP https://github.com/deepseek-ai/DeepEP.git "$DEEPEP_COMMIT"
(cd "$build/DeepEP" && "$python" -m pip install . --no-build-isolation)
if [ -n "${TORCHAO_COMMIT-}" ]; then
  checkout ao https://github.com/pytorch/ao.git "$TORCHAO_COMMIT"
  (cd "$build/ao" && "$python" -m pip install . --no-build-isolation)
fi
"$python" -m pip install torchdata datasets tokenizers tyro einops fsspec # torchtitan's own requirements
"$python" -c 'import torch; print(torch.__version__)' >"$folder/.torch"
rm -rf "$build"
mv "$folder/.torch" "$folder/.complete"
