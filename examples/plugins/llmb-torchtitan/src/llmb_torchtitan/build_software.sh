# build_software.sh FOLDER
# Build what the publisher adds to the image, in a virtual environment over the Python of the image.
# Set by the job: TORCH (requirements), TORCH_CUDA_ARCH_LIST, DEEPEP_COMMIT, and if the GPU type needs them
# TORCHAO_COMMIT, NVSHMEM, CCCL and RDMA_CORE (versions), HYBRID_EP_MULTINODE.
set -eux
folder=$1
unset PIP_CONSTRAINT # the versions of the image
rm -rf "$folder"
python3 -m venv --without-pip --system-site-packages "$folder" # pip is that of the image
python=$folder/bin/python build=$folder/build
mkdir "$build"

checkout() { # checkout FOLDER URL COMMIT
  git clone "$2" "$1"
  git -C "$1" checkout "$3"
}

# shellcheck disable=SC2086 # several words
"$python" -m pip install --no-deps $TORCH
if [ ! -e /usr/include/infiniband/mlx5dv.h ]; then # DeepEP's sources include it
  apt-get update
  apt-get install -y --no-install-recommends libibverbs-dev
fi
if [ -n "${NVSHMEM-}" ]; then # for DeepEP
  "$python" -m pip install "nvidia-nvshmem-cu13==$NVSHMEM"
  NVSHMEM_DIR=$("$python" -c 'import nvidia.nvshmem as found; print(next(iter(found.__path__)))')
  export NVSHMEM_DIR
  # shellcheck disable=SC2012 # the names are those of versions
  ln -sf "$(basename "$(ls "$NVSHMEM_DIR"/lib/libnvshmem_host.so.* | head -n 1)")" "$NVSHMEM_DIR/lib/libnvshmem_host.so"
fi
if [ -n "${CCCL-}" ] && [ ! -e /usr/local/cuda/include/cuda/std/tuple ]; then
  checkout "$build/cccl" https://github.com/NVIDIA/cccl.git "$CCCL"
  export CPLUS_INCLUDE_PATH=$build/cccl/libcudacxx/include${CPLUS_INCLUDE_PATH:+:$CPLUS_INCLUDE_PATH}
fi
if [ -n "${RDMA_CORE-}" ]; then # for HybridEP, which compiles and loads with it in the run too
  apt-get update
  apt-get install -y --no-install-recommends \
    build-essential cmake ninja-build libudev-dev libnl-3-dev libnl-route-3-dev pkg-config
  checkout "$folder/rdma-core" https://github.com/linux-rdma/rdma-core.git "$RDMA_CORE"
  (cd "$folder/rdma-core" && bash build.sh)
  export RDMA_CORE_HOME=$folder/rdma-core/build
  mkdir "$build/stubs"
  ln -s /usr/local/cuda/lib64/stubs/libnvidia-ml.so "$build/stubs/libnvidia-ml.so.1" # there is no driver here
  export LIBRARY_PATH=$build/stubs:$RDMA_CORE_HOME/lib:${LIBRARY_PATH-}
  export LD_LIBRARY_PATH=$RDMA_CORE_HOME/lib:${LD_LIBRARY_PATH-}
fi
checkout "$build/DeepEP" https://github.com/deepseek-ai/DeepEP.git "$DEEPEP_COMMIT"
(cd "$build/DeepEP" && "$python" -m pip install . --no-build-isolation)
if [ -n "${TORCHAO_COMMIT-}" ]; then
  checkout "$build/ao" https://github.com/pytorch/ao.git "$TORCHAO_COMMIT"
  (cd "$build/ao" && "$python" -m pip install . --no-build-isolation)
fi
"$python" -m pip install --no-deps torchdata # it requires torch, whose requirements are the CUDA libraries of the image
"$python" -m pip install datasets tokenizers tyro einops fsspec tensorboard pillow # the rest of torchtitan's requirements
"$python" -c 'import torch; print(torch.__version__)' >"$folder/.torch"
rm -rf "$build"
mv "$folder/.torch" "$folder/.complete"
